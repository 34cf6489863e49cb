//! Lists from the kernel by netlink (netlink(7)), and decoding of its messages.

use std::io;
use std::os::fd::AsRawFd;

use crate::sys::{short, socket};

/// Length of `struct nlmsghdr`, in bytes.
pub(crate) const HEADER: usize = 16;
/// Mask of an attribute's type, without `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.
const ATTRIBUTE_TYPE: u16 = 0x3FFF;
/// Greatest number of datagrams of one list.
const DATAGRAMS: usize = 1_024;

/// A request for a complete list: a header for `kind`, then `body`.
pub(crate) fn listing(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    let flags = short((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as i64);
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Sends a request and calls back with the body of every message of the list.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn list(protocol: libc::c_int, request: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol)?;
    // SAFETY: the pointer and length describe `request`, which lives across the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut buffer = vec![0_u8; 1 << 16];
    for _ in 0..DATAGRAMS {
        // SAFETY: the pointer and length describe `buffer`, which is exclusively borrowed.
        let got = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if got < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        if messages(&buffer[..got.unsigned_abs()], &mut each)? {
            return Ok(());
        }
    }
    Err(io::Error::other("the kernel's list does not end"))
}

/// Decodes the messages of one datagram; true at the end of the list.
pub(crate) fn messages(mut datagram: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<bool> {
    const DONE: u16 = short(libc::NLMSG_DONE as i64);
    const ERROR: u16 = short(libc::NLMSG_ERROR as i64);
    while let (Some(length), Some(kind)) = (word(datagram, 0), half(datagram, 4)) {
        let Some(body) = datagram.get(HEADER..length as usize) else {
            return Err(io::Error::other("a cut message of the kernel"));
        };
        match kind {
            DONE => return Ok(true),
            ERROR => {
                let number = word(body, 0).unwrap_or(0).cast_signed().wrapping_neg();
                return Err(io::Error::from_raw_os_error(number));
            }
            _ => each(body),
        }
        datagram = datagram.get((length as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Four bytes in native byte order.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Two bytes in native byte order.
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The first attribute of this type.
pub(crate) fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(half(attributes, 0)?);
        let value = attributes.get(4..length)?;
        if half(attributes, 2)? & ATTRIBUTE_TYPE == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// The text of an attribute, without its terminator.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}
