// SPDX-License-Identifier: GPL-2.0
/*
 * Gives a PCI network function an RDMA device as the driver of a RoCE adapter does, for the tests of fabric-nic. The device hangs below the
 * function, its one port belongs to whatever netdev the function has, in whichever network namespace that is, and the device itself moves
 * between namespaces in exclusive mode. It carries no data.
 *
 *   echo '0000:01:10.0 mlx5_2' > /sys/module/lab_hca/parameters/create
 *   echo 0000:01:10.0 > /sys/module/lab_hca/parameters/destroy
 *
 * Without a name it gets the next free mlx5_N. It goes when the function loses its driver.
 */
#include <linux/etherdevice.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

#define PORT 1
#define GIDS 16

struct hca {
	struct ib_device ib;
	struct list_head entry;
	struct pci_dev *function;
	struct notifier_block netdev_events;
	spinlock_t lock;		/* of what follows */
	struct net_device *netdev;	/* cleared before the netdev can go away */
	bool is_registered;
};

struct hca_context {
	struct ib_ucontext ib;
};

struct hca_domain {
	struct ib_pd ib;
};

static LIST_HEAD(hcas);
static DEFINE_MUTEX(hcas_mutex);	/* within the lock of a function, as a driver's core takes them */
static bool is_leaving;

static struct hca *to_hca(struct ib_device *ib)
{
	return container_of(ib, struct hca, ib);
}

static bool is_usable(const struct net_device *netdev)
{
	return netdev && netif_running(netdev) && netif_carrier_ok(netdev);
}

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct pci_dev *function = to_hca(ib)->function;

	*attr = (struct ib_device_attr){
		.sys_image_guid = ib->node_guid,
		.vendor_id = function->vendor,
		.vendor_part_id = function->device,
		.max_pkeys = 1,
		.max_pd = 16,
		.max_qp = 16,
		.max_cq = 16,
		.max_mr = 16,
	};
	return 0;
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct hca *hca = to_hca(ib);
	bool usable;
	int mtu;

	spin_lock_bh(&hca->lock);
	usable = is_usable(hca->netdev);
	mtu = hca->netdev ? hca->netdev->mtu : 0;
	spin_unlock_bh(&hca->lock);

	attr->state = usable ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = usable ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = iboe_get_mtu(mtu) ?: IB_MTU_256;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_HDR;
	attr->gid_tbl_len = GIDS;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = SZ_1G;
	attr->ip_gids = true;
	return 0;
}

static int get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->gid_tbl_len = GIDS;
	immutable->pkey_tbl_len = 1;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;	/* the core keeps the table */
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static void dealloc_ucontext(struct ib_ucontext *context)
{
}

/* Without it the core refuses to move the device to another network namespace. */
static void disassociate_ucontext(struct ib_ucontext *context)
{
}

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static const struct ib_device_ops ops = {
	.owner = THIS_MODULE,
	/*
	 * libibverbs opens it with the provider of a driver that it knows. Not rxe's: when a netdev moves, that driver takes every device
	 * with its number for one of its own, and ends it. The module siw is not in the lab.
	 */
	.driver_id = RDMA_DRIVER_SIW,
	.uverbs_abi_ver = 1,
	.query_device = query_device,
	.query_port = query_port,
	.query_pkey = query_pkey,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.add_gid = add_gid,
	.del_gid = del_gid,
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.disassociate_ucontext = disassociate_ucontext,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, hca_context, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, hca_domain, ib),
};

static void set_netdev(struct hca *hca, struct net_device *netdev)
{
	spin_lock_bh(&hca->lock);
	hca->netdev = netdev;
	spin_unlock_bh(&hca->lock);
	ib_device_set_netdev(&hca->ib, netdev, PORT);
}

static void tell_state(struct hca *hca, const struct net_device *netdev)
{
	struct ib_event event = {
		.device = &hca->ib,
		.event = is_usable(netdev) ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
		.element.port_num = PORT,
	};

	if (READ_ONCE(hca->is_registered))
		ib_dispatch_event(&event);
}

/* A netdev that moves is unregistered in one namespace and registered in the other. */
static int on_netdev_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct hca *hca = container_of(block, struct hca, netdev_events);
	struct net_device *netdev = netdev_notifier_info_to_dev(info);

	if (netdev->dev.parent != &hca->function->dev)
		return NOTIFY_DONE;
	if (event == NETDEV_REGISTER)
		set_netdev(hca, netdev);
	else if (event == NETDEV_UNREGISTER)
		set_netdev(hca, NULL);
	else if (event == NETDEV_UP || event == NETDEV_DOWN || event == NETDEV_CHANGE)
		tell_state(hca, netdev);
	return NOTIFY_DONE;
}

static struct hca *find(const struct pci_dev *function)
{
	struct hca *hca;

	list_for_each_entry(hca, &hcas, entry)
		if (hca->function == function)
			return hca;
	return NULL;
}

static int create(struct pci_dev *function, const char *name)
{
	struct hca *hca;
	u8 address[ETH_ALEN];
	int error;

	if (find(function))
		return -EEXIST;
	if (!function->driver || is_leaving)
		return -ENODEV;
	hca = ib_alloc_device(hca, ib);
	if (!hca)
		return -ENOMEM;
	spin_lock_init(&hca->lock);
	hca->function = function;
	hca->netdev_events.notifier_call = on_netdev_event;
	hca->ib.dev.parent = &function->dev;
	hca->ib.node_type = RDMA_NODE_IB_CA;
	hca->ib.phys_port_cnt = 1;
	hca->ib.num_comp_vectors = 1;
	strscpy(hca->ib.node_desc, "lab_hca", sizeof(hca->ib.node_desc));
	ib_set_device_ops(&hca->ib, &ops);

	/* Tells us of every netdev that is there already, too. */
	error = register_netdevice_notifier(&hca->netdev_events);
	if (error)
		goto free;
	eth_random_addr(address);
	addrconf_addr_eui48((u8 *)&hca->ib.node_guid, (const char *)address);
	error = ib_register_device(&hca->ib, name, &function->dev);
	if (error)
		goto ignore_netdevs;
	WRITE_ONCE(hca->is_registered, true);
	list_add_tail(&hca->entry, &hcas);
	return 0;

ignore_netdevs:
	unregister_netdevice_notifier(&hca->netdev_events);
free:
	ib_dealloc_device(&hca->ib);
	return error;
}

static void destroy(struct hca *hca)
{
	list_del(&hca->entry);
	WRITE_ONCE(hca->is_registered, false);
	unregister_netdevice_notifier(&hca->netdev_events);
	ib_unregister_device(&hca->ib);
	ib_dealloc_device(&hca->ib);
}

static int on_bus_event(struct notifier_block *block, unsigned long event, void *device)
{
	struct hca *hca;

	if (event != BUS_NOTIFY_UNBIND_DRIVER)
		return NOTIFY_DONE;
	mutex_lock(&hcas_mutex);
	hca = find(to_pci_dev(device));
	if (hca)
		destroy(hca);
	mutex_unlock(&hcas_mutex);
	return NOTIFY_DONE;
}

static struct notifier_block bus_events = { .notifier_call = on_bus_event };

/* The function that the text names; the caller gives it back. */
static struct pci_dev *get_function(const char *text, char name[IB_DEVICE_NAME_MAX])
{
	unsigned int domain, bus, slot, number;

	BUILD_BUG_ON(IB_DEVICE_NAME_MAX != 64);
	strscpy(name, "mlx5_%d", IB_DEVICE_NAME_MAX);
	if (sscanf(text, "%x:%x:%x.%x %63s", &domain, &bus, &slot, &number, name) < 4)
		return NULL;
	return pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, number));
}

static int set_create(const char *text, const struct kernel_param *parameter)
{
	char name[IB_DEVICE_NAME_MAX];
	struct pci_dev *function = get_function(text, name);
	int error;

	if (!function)
		return -ENODEV;
	/* A driver that is leaving the function has done so before or after. */
	device_lock(&function->dev);
	mutex_lock(&hcas_mutex);
	error = create(function, name);
	mutex_unlock(&hcas_mutex);
	device_unlock(&function->dev);
	pci_dev_put(function);
	return error;
}

static int set_destroy(const char *text, const struct kernel_param *parameter)
{
	char name[IB_DEVICE_NAME_MAX];
	struct pci_dev *function = get_function(text, name);
	struct hca *hca;

	if (!function)
		return -ENODEV;
	mutex_lock(&hcas_mutex);
	hca = find(function);
	if (hca)
		destroy(hca);
	mutex_unlock(&hcas_mutex);
	pci_dev_put(function);
	return hca ? 0 : -ENODEV;
}

static const struct kernel_param_ops create_ops = { .set = set_create };
static const struct kernel_param_ops destroy_ops = { .set = set_destroy };
module_param_cb(create, &create_ops, NULL, 0200);
MODULE_PARM_DESC(create, "PCI address of a network function, and the name of its RDMA device");
module_param_cb(destroy, &destroy_ops, NULL, 0200);
MODULE_PARM_DESC(destroy, "PCI address of the function whose RDMA device goes");

static int __init lab_hca_init(void)
{
	return bus_register_notifier(&pci_bus_type, &bus_events);
}

static void __exit lab_hca_exit(void)
{
	struct hca *hca, *next;

	bus_unregister_notifier(&pci_bus_type, &bus_events);
	mutex_lock(&hcas_mutex);
	is_leaving = true;
	list_for_each_entry_safe(hca, next, &hcas, entry)
		destroy(hca);
	mutex_unlock(&hcas_mutex);
}

module_init(lab_hca_init);
module_exit(lab_hca_exit);
MODULE_DESCRIPTION("RDMA devices without a data path for PCI network functions, for tests");
MODULE_LICENSE("GPL");
