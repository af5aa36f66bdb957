// SPDX-License-Identifier: GPL-2.0
/*
 * Gives a PCI network function RDMA devices as the driver of a RoCE adapter does, for the tests of fabric-nic. A device hangs below the
 * function, its one port belongs to whatever netdev the function has, in whichever network namespace that is, and the device itself moves
 * between namespaces in exclusive mode. It carries no data.
 *
 *   echo '0000:01:10.0 mlx5_2' > /sys/module/lab_hca/parameters/create
 *   echo '0000:01:10.0 mlx5_2 state=DOWN' > /sys/module/lab_hca/parameters/set
 *   echo 0000:01:10.0 > /sys/module/lab_hca/parameters/destroy
 *
 * Without a name, a new device gets the next free mlx5_N, and all that the function has are set or destroyed. A name is the one it was
 * created with, wherever the device is and whatever it is called there. It goes when the function loses its driver.
 *
 * What may follow, and what of an adapter that is:
 *   port=OWNER  a port of another function's netdev, or of the netdev (a bond) that has this name; twice for two ports. Only in `create`
 *   move=no     its driver cannot part with the programs that use it, so it cannot move. Only in `create`
 *   state=DOWN  or INIT: whatever the netdev is; state=auto ends it
 *   mtu=1024    active_mtu, whatever the netdev's is; mtu=auto ends it
 *   gids=no     it takes no more GIDs; gids=yes ends it, and it gets those that it lacks
 */
#include <linux/etherdevice.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

#define PORTS 2
#define GIDS 16

struct port {
	char owner[16];			/* a PCI address, or the name of a netdev */
	struct net_device *netdev;	/* cleared before the netdev can go away */
};

struct hca {
	struct ib_device ib;
	struct list_head entry;
	struct pci_dev *function;
	char name[IB_DEVICE_NAME_MAX];	/* at its beginning */
	struct notifier_block netdev_events;
	spinlock_t lock;		/* of the ports' netdevs */
	struct port ports[PORTS];
	bool is_registered;
	/* 0: as the netdev has it. */
	enum ib_port_state state;
	enum ib_mtu mtu;
	bool refuses_gids;
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
	const struct net_device *netdev;
	bool usable;
	int mtu;

	spin_lock_bh(&hca->lock);
	netdev = hca->ports[port - 1].netdev;
	usable = is_usable(netdev);
	mtu = netdev ? netdev->mtu : 0;
	spin_unlock_bh(&hca->lock);

	attr->state = READ_ONCE(hca->state) ?: usable ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = attr->state == IB_PORT_DOWN ? IB_PORT_PHYS_STATE_DISABLED : IB_PORT_PHYS_STATE_LINK_UP;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = READ_ONCE(hca->mtu) ?: iboe_get_mtu(mtu) ?: IB_MTU_256;
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
	return READ_ONCE(to_hca(attr->device)->refuses_gids) ? -ENOSPC : 0;	/* the core keeps the table */
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

static bool belongs(const struct port *port, const struct net_device *netdev)
{
	const struct device *parent = netdev->dev.parent;

	return !strcmp(port->owner, netdev->name) || (parent && !strcmp(port->owner, dev_name(parent)));
}

static void set_netdev(struct hca *hca, u32 port, struct net_device *netdev)
{
	spin_lock_bh(&hca->lock);
	hca->ports[port - 1].netdev = netdev;
	spin_unlock_bh(&hca->lock);
	ib_device_set_netdev(&hca->ib, netdev, port);
}

static void tell_state(struct hca *hca, u32 port)
{
	struct ib_port_attr attr = {};
	struct ib_event event = {
		.device = &hca->ib,
		.element.port_num = port,
	};

	query_port(&hca->ib, port, &attr);
	event.event = attr.state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	if (READ_ONCE(hca->is_registered))
		ib_dispatch_event(&event);
}

/* A netdev that moves is unregistered in one namespace and registered in the other. */
static int on_netdev_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct hca *hca = container_of(block, struct hca, netdev_events);
	struct net_device *netdev = netdev_notifier_info_to_dev(info);
	u32 port;

	for (port = 1; port <= hca->ib.phys_port_cnt; ++port) {
		if (event == NETDEV_REGISTER && belongs(&hca->ports[port - 1], netdev))
			set_netdev(hca, port, netdev);
		else if (hca->ports[port - 1].netdev != netdev)
			continue;
		else if (event == NETDEV_UNREGISTER)
			set_netdev(hca, port, NULL);
		else if (event == NETDEV_UP || event == NETDEV_DOWN || event == NETDEV_CHANGE)
			tell_state(hca, port);
	}
	return NOTIFY_DONE;
}

/* One `key=value` of what the adapter is or does; what it does may change while it is there. */
static int set_option(struct hca *hca, const char *option)
{
	const char *value = strchr(option, '=');
	bool is_new = !hca->is_registered;
	int mtu;

	if (!value++)
		return -EINVAL;
	if (is_new && !strncmp(option, "port=", 5)) {
		if (hca->ib.phys_port_cnt == PORTS)
			return -ENOSPC;
		strscpy(hca->ports[hca->ib.phys_port_cnt++].owner, value, sizeof(hca->ports[0].owner));
	} else if (is_new && !strcmp(option, "move=no")) {
		hca->ib.ops.disassociate_ucontext = NULL;
	} else if (!strcmp(option, "gids=yes") || !strcmp(option, "gids=no")) {
		WRITE_ONCE(hca->refuses_gids, !strcmp(value, "no"));
		if (!is_new && !hca->refuses_gids)
			rdma_roce_rescan_device(&hca->ib);
	} else if (!strncmp(option, "state=", 6)) {
		if (!strcmp(value, "auto"))
			WRITE_ONCE(hca->state, 0);
		else if (!strcmp(value, "DOWN"))
			WRITE_ONCE(hca->state, IB_PORT_DOWN);
		else if (!strcmp(value, "INIT"))
			WRITE_ONCE(hca->state, IB_PORT_INIT);
		else
			return -EINVAL;
	} else if (!strncmp(option, "mtu=", 4)) {
		if (!strcmp(value, "auto"))
			WRITE_ONCE(hca->mtu, 0);
		else if (!kstrtoint(value, 10, &mtu))
			WRITE_ONCE(hca->mtu, ib_mtu_int_to_enum(mtu));
		else
			return -EINVAL;
	} else {
		return -EINVAL;
	}
	return 0;
}

static int set_options(struct hca *hca, char *options)
{
	const char *option;
	int error;

	while ((option = strsep(&options, " ")) != NULL) {
		error = *option ? set_option(hca, option) : 0;
		if (error)
			return error;
	}
	return 0;
}

static bool is_meant(const struct hca *hca, const struct pci_dev *function, const char *name)
{
	return hca->function == function && (!*name || !strcmp(hca->name, name));
}

static int create(struct pci_dev *function, const char *name, char *options)
{
	struct hca *hca;
	u8 address[ETH_ALEN];
	int error;

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
	hca->ib.num_comp_vectors = 1;
	strscpy(hca->ib.node_desc, "lab_hca", sizeof(hca->ib.node_desc));
	ib_set_device_ops(&hca->ib, &ops);
	error = set_options(hca, options);
	if (error)
		goto free;
	if (hca->ib.phys_port_cnt == 0) {
		strscpy(hca->ports[0].owner, pci_name(function), sizeof(hca->ports[0].owner));
		hca->ib.phys_port_cnt = 1;
	}

	/* Tells us of every netdev that is there already, too. */
	error = register_netdevice_notifier(&hca->netdev_events);
	if (error)
		goto free;
	eth_random_addr(address);
	addrconf_addr_eui48((u8 *)&hca->ib.node_guid, (const char *)address);
	error = ib_register_device(&hca->ib, *name ? name : "mlx5_%d", &function->dev);
	if (error)
		goto ignore_netdevs;
	strscpy(hca->name, dev_name(&hca->ib.dev), sizeof(hca->name));
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

static int destroy_those_meant(const struct pci_dev *function, const char *name)
{
	struct hca *hca, *next;
	int error = -ENODEV;

	list_for_each_entry_safe(hca, next, &hcas, entry) {
		if (is_meant(hca, function, name)) {
			destroy(hca);
			error = 0;
		}
	}
	return error;
}

static int set_those_meant(const struct pci_dev *function, const char *name, const char *options)
{
	struct hca *hca;
	char *copy;
	u32 port;
	int error = -ENODEV;

	list_for_each_entry(hca, &hcas, entry) {
		if (!is_meant(hca, function, name))
			continue;
		copy = kstrdup(options, GFP_KERNEL);	/* taken apart on the way */
		error = copy ? set_options(hca, copy) : -ENOMEM;
		kfree(copy);
		if (error)
			return error;
		for (port = 1; port <= hca->ib.phys_port_cnt; ++port)
			tell_state(hca, port);
	}
	return error;
}

static int on_bus_event(struct notifier_block *block, unsigned long event, void *device)
{
	if (event != BUS_NOTIFY_UNBIND_DRIVER)
		return NOTIFY_DONE;
	mutex_lock(&hcas_mutex);
	destroy_those_meant(to_pci_dev(device), "");
	mutex_unlock(&hcas_mutex);
	return NOTIFY_DONE;
}

static struct notifier_block bus_events = { .notifier_call = on_bus_event };

/* FUNCTION [NAME] [OPTION...]; an option has a `=`. */
struct order {
	char *text;
	struct pci_dev *function;
	const char *name;
	char *options;
};

static int read_order(const char *text, struct order *order)
{
	unsigned int domain, bus, slot, number;

	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &number) != 4)
		return -EINVAL;
	order->text = kstrdup(text, GFP_KERNEL);
	if (!order->text)
		return -ENOMEM;
	order->function = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, number));
	if (!order->function) {
		kfree(order->text);
		return -ENODEV;
	}
	order->options = strim(order->text);
	order->name = "";
	strsep(&order->options, " ");
	if (order->options) {
		size_t length = strcspn(order->options, " ");

		if (!memchr(order->options, '=', length))
			order->name = strsep(&order->options, " ");
	}
	return 0;
}

static void forget_order(struct order *order)
{
	pci_dev_put(order->function);
	kfree(order->text);
}

static int set_create(const char *text, const struct kernel_param *parameter)
{
	struct order order;
	int error = read_order(text, &order);

	if (error)
		return error;
	/* A driver that is leaving the function has done so before or after. */
	device_lock(&order.function->dev);
	mutex_lock(&hcas_mutex);
	error = create(order.function, order.name, order.options);
	mutex_unlock(&hcas_mutex);
	device_unlock(&order.function->dev);
	forget_order(&order);
	return error;
}

static int set_set(const char *text, const struct kernel_param *parameter)
{
	struct order order;
	int error = read_order(text, &order);

	if (error)
		return error;
	mutex_lock(&hcas_mutex);
	error = set_those_meant(order.function, order.name, order.options ?: "");
	mutex_unlock(&hcas_mutex);
	forget_order(&order);
	return error;
}

static int set_destroy(const char *text, const struct kernel_param *parameter)
{
	struct order order;
	int error = read_order(text, &order);

	if (error)
		return error;
	mutex_lock(&hcas_mutex);
	error = destroy_those_meant(order.function, order.name);
	mutex_unlock(&hcas_mutex);
	forget_order(&order);
	return error;
}

static const struct kernel_param_ops create_ops = { .set = set_create };
static const struct kernel_param_ops set_ops = { .set = set_set };
static const struct kernel_param_ops destroy_ops = { .set = set_destroy };
module_param_cb(create, &create_ops, NULL, 0200);
MODULE_PARM_DESC(create, "PCI address of a network function, the name of its RDMA device, and what it is like");
module_param_cb(set, &set_ops, NULL, 0200);
MODULE_PARM_DESC(set, "PCI address of the function, the name of its RDMA device, and what that does from now on");
module_param_cb(destroy, &destroy_ops, NULL, 0200);
MODULE_PARM_DESC(destroy, "PCI address of the function, and the name of the RDMA device that goes; without, all go");

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
