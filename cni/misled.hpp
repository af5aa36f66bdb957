#pragma once

#include <string>

namespace cni {

/// A device plugin gives a pod its char devices once, when the pod is admitted. Where they have become another device's since, every
/// further attempt of the runtime at the same pod has them still, though nothing changes any more: the pod is remembered until the next
/// boot, or the next one that this happens to with the device. An empty UID is nobody's. Throws netlink::Error.
void remember_misled_pod(const std::string& device_key, const std::string& pod_uid);
[[nodiscard]] bool is_misled(const std::string& device_key, const std::string& pod_uid);

}  // namespace cni
