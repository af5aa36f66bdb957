"""The half of record.sh that iproute2 cannot do.

record.py dump INTERFACE FILE    what follows the netlink header in the answer to RTM_GETLINK, as hexadecimal text
record.py neighbours INTERFACE   the same of RTM_GETNEIGHTBL: the settings of INTERFACE, and of a new one
record.py pin PATH               an XDP program that passes everything on
"""
import ctypes
import platform
import socket
import struct
import sys

RTM_GETLINK, RTM_NEWLINK, RTM_GETNEIGHTBL, RTM_NEWNEIGHTBL = 18, 16, 66, 64
NDTA_PARMS, NDTPA_IFINDEX, NLM_F_DUMP = 6, 1, 0x300
IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS = 29, 1 << 3


def dump(interface, path, mask):
    body = struct.pack("BxHiII", 0, 0, socket.if_nametoindex(interface), 0, 0) + struct.pack("HHI", 8, IFLA_EXT_MASK, mask)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("IHHII", 16 + len(body), RTM_GETLINK, 1, 1, 0) + body)
        answer = kernel.recv(1 << 18)
    length, kind = struct.unpack("IH", answer[:6])
    assert kind == RTM_NEWLINK, answer
    write(path, answer[16:length])


def write(path, payload):
    with open(path, "w") as file:
        for at in range(0, len(payload), 32):
            file.write(payload[at : at + 32].hex() + "\n")


def attributes(data):
    while len(data) >= 4:
        length, kind = struct.unpack("HH", data[:4])
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


def neighbours(interface):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("IHHIIBBH", 20, RTM_GETNEIGHTBL, 1 | NLM_F_DUMP, 1, 0, 0, 0, 0))
        data = kernel.recv(1 << 18)
        while struct.unpack("IH", data[:6])[1] == RTM_NEWNEIGHTBL:
            while data:
                length = struct.unpack("I", data[:4])[0]
                payload, data = data[16:length], data[(length + 3) & ~3 :]
                settings = dict(attributes(dict(attributes(payload[4:]))[NDTA_PARMS]))
                index = struct.unpack("I", settings.get(NDTPA_IFINDEX, bytes(4)))[0]
                table = {socket.AF_INET: "arp", socket.AF_INET6: "ndisc"}.get(payload[0])
                if table and index in (0, socket.if_nametoindex(interface)):
                    write(f"{table}-{interface if index else 'default'}.hex", payload)
            data = kernel.recv(1 << 18)


def pin(path):
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)

    def bpf(command, attributes):
        result = libc.syscall(number, command, attributes, len(attributes))
        assert result >= 0, ctypes.get_errno()
        return result

    # r0 = XDP_PASS; exit
    program = ctypes.create_string_buffer(struct.pack("BBhi", 0xB7, 0, 0, 2) + struct.pack("BBhi", 0x95, 0, 0, 0))
    name, licence = ctypes.create_string_buffer(path.encode()), ctypes.create_string_buffer(b"Apache-2.0")
    loaded = bpf(5, struct.pack("IIQQ", 6, 2, ctypes.addressof(program), ctypes.addressof(licence)))
    bpf(6, struct.pack("QI", ctypes.addressof(name), loaded))


if sys.argv[1] == "pin":
    pin(sys.argv[2])
elif sys.argv[1] == "neighbours":
    neighbours(sys.argv[2])
else:
    dump(sys.argv[2], sys.argv[3], RTEXT_FILTER_SKIP_STATS if sys.argv[1] == "dump" else 0)
