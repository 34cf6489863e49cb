//! XDP support of drivers, by generic netlink (family `netdev`, linux/netdev.h; Linux 6.3 and later).

use std::io;

use crate::netlink::{self, attribute, half, word};

/// `GENL_ID_CTRL`: the controller, which has the numbers of all families.
const CONTROLLER: u16 = 0x10;
/// `CTRL_CMD_GETFAMILY`.
const GET_FAMILY: u8 = 3;
/// `CTRL_ATTR_FAMILY_ID`.
const FAMILY_NUMBER: u16 = 1;
/// `CTRL_ATTR_FAMILY_NAME`.
const FAMILY_NAME: u16 = 2;
/// `NETDEV_CMD_DEV_GET`.
const GET_DEVICE: u8 = 1;
/// `NETDEV_A_DEV_IFINDEX`.
const INDEX: u16 = 1;
/// `NETDEV_A_DEV_XDP_FEATURES`.
const XDP_FEATURES: u16 = 3;
/// `NETDEV_XDP_ACT_BASIC`.
const BASIC: u64 = 1;
/// `NETDEV_XDP_ACT_XSK_ZEROCOPY`.
const ZERO_COPY: u64 = 8;
/// Length of `struct genlmsghdr`, in bytes.
const GENERIC_HEADER: usize = 4;

/// XDP support of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpSupport {
    /// Whether programs run in the driver; otherwise in the stack, on copies of the frames.
    pub by_driver: bool,
    /// Whether `AF_XDP` sockets share memory with the interface; otherwise each frame is copied once.
    pub zero_copy: bool,
}

/// XDP support of the driver of an interface.
///
/// # Errors
/// There is no such interface, or the kernel does not report it.
pub fn xdp_support(interface: &str) -> io::Result<XdpSupport> {
    let index = crate::interface_named(interface).map_err(|error| io::Error::other(error.to_string()))?.index;
    let mut number = None;
    ask(CONTROLLER, GET_FAMILY, |attributes| number = number.or(family(attributes)))?;
    let number = number.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    let mut found = None;
    ask(number, GET_DEVICE, |attributes| found = found.or(support(attributes, index)))?;
    found.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
}

/// Requests a complete list and calls back with the attributes of each entry.
fn ask(family: u16, command: u8, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let request = netlink::listing(family, &[command, 1, 0, 0]);
    netlink::list(libc::NETLINK_GENERIC, &request, |body| {
        each(body.get(GENERIC_HEADER..).unwrap_or_default());
    })
}

/// Number of the family `netdev`, if these are its attributes.
fn family(attributes: &[u8]) -> Option<u16> {
    let name = attribute(attributes, FAMILY_NAME)?;
    if netlink::text(name) != "netdev" {
        return None;
    }
    half(attribute(attributes, FAMILY_NUMBER)?, 0)
}

/// XDP support of interface `index`, if these are its attributes.
fn support(attributes: &[u8], index: u32) -> Option<XdpSupport> {
    if word(attribute(attributes, INDEX)?, 0)? != index {
        return None;
    }
    let features = u64::from_ne_bytes(attribute(attributes, XDP_FEATURES)?.try_into().ok()?);
    Some(XdpSupport { by_driver: features & BASIC != 0, zero_copy: features & ZERO_COPY != 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut out = [&((4 + value.len()) as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    #[test]
    fn features_are_those_of_the_interface_that_was_asked_for() {
        let told = |index: u32, features: u64| {
            [with(INDEX, &index.to_ne_bytes()), with(XDP_FEATURES, &features.to_ne_bytes())].concat()
        };
        let none = XdpSupport { by_driver: false, zero_copy: false };
        for (features, expected) in [
            (0, none),
            (0x03, XdpSupport { by_driver: true, ..none }),
            (0x0f, XdpSupport { by_driver: true, zero_copy: true }),
        ] {
            assert_eq!(support(&told(7, features), 7), Some(expected));
            assert_eq!(support(&told(7, features), 8), None);
        }
        let named = |name: &[u8]| [with(FAMILY_NUMBER, &[31, 0]), with(FAMILY_NAME, name)].concat();
        assert_eq!(family(&named(b"netdev\0")), Some(u16::from_ne_bytes([31, 0])));
        assert_eq!(family(&named(b"nlctrl\0")), None);
    }

    #[test]
    fn loopback_has_no_zero_copy_or_the_kernel_does_not_tell() {
        match xdp_support("lo") {
            Ok(has) => assert!(!has.zero_copy, "{has:?}"),
            Err(why) => assert_eq!(why.kind(), io::ErrorKind::Unsupported, "{why}"),
        }
        assert!(xdp_support("none-of-this-name").is_err());
    }

    proptest! {
        #[test]
        fn whatever_a_kernel_sends_is_read_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = (family(&bytes), support(&bytes, 7));
        }
    }
}
