//! Which frames a receiver of streams takes.

/// Ports a [`FrameFilter`] may name.
pub const MAX_PORTS: usize = 64;

/// Which frames are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameFilter {
    /// UDP over IPv4 to these ports.
    pub udp_ports: Vec<u16>,
    /// Frames of this EtherType, if any.
    pub ether_type: Option<u16>,
}

impl FrameFilter {
    /// A classic BPF program that takes what is selected.
    pub(crate) fn filter(&self) -> Vec<libc::sock_filter> {
        let op = |code: u32, jt: usize, jf: usize, k| libc::sock_filter {
            code: code as u16,
            jt: jt as u8,
            jf: jf as u8,
            k,
        };
        let load = |size, at| op(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, at);
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let give = libc::BPF_RET | libc::BPF_K;
        let ports = &self.udp_ports[..self.udp_ports.len().min(MAX_PORTS)];
        let mut code = vec![load(libc::BPF_H, 12)];
        if let Some(ether_type) = self.ether_type {
            // Jumps over the next instruction, which takes the frame, unless it is one.
            code.push(op(equal, 0, 1, u32::from(ether_type)));
            code.push(op(give, 0, 0, u32::MAX));
        }
        // From each test to the refusal, which is the last instruction but one.
        let n = ports.len();
        code.push(op(equal, 0, n + 5, 0x0800));
        code.push(load(libc::BPF_B, 14));
        code.push(op(equal, 0, n + 3, 0x45));
        code.push(load(libc::BPF_B, 23));
        code.push(op(equal, 0, n + 1, 17));
        code.push(load(libc::BPF_H, 36));
        for (i, port) in ports.iter().enumerate() {
            code.push(op(equal, n - i, 0, u32::from(*port)));
        }
        code.push(op(give, 0, 0, 0));
        code.push(op(give, 0, 0, u32::MAX));
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Classic BPF as its definition has it, for the instructions used here.
    fn accepts(code: &[libc::sock_filter], frame: &[u8]) -> bool {
        let (mut at, mut value) = (0_usize, 0_u32);
        loop {
            let op = &code[at];
            let k = op.k as usize;
            at += 1;
            match u32::from(op.code) {
                c if c == libc::BPF_LD | libc::BPF_H | libc::BPF_ABS => {
                    let Some(half) = frame.get(k..k + 2) else { return false };
                    value = u32::from(u16::from_be_bytes([half[0], half[1]]));
                }
                c if c == libc::BPF_LD | libc::BPF_B | libc::BPF_ABS => {
                    let Some(byte) = frame.get(k) else { return false };
                    value = u32::from(*byte);
                }
                c if c == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                    at += usize::from(if value == op.k { op.jt } else { op.jf });
                }
                _ => return op.k != 0,
            }
        }
    }

    #[test]
    fn the_filter_takes_what_is_selected_and_nothing_else() {
        let udp = |port: u16| {
            let mut frame = vec![0_u8; 60];
            frame[12..14].copy_from_slice(&[8, 0]);
            (frame[14], frame[23]) = (0x45, 17);
            frame[36..38].copy_from_slice(&port.to_be_bytes());
            frame
        };
        let mut raw = vec![0_u8; 60];
        raw[12..14].copy_from_slice(&[0x88, 0xB5]);
        let mut tcp = udp(9);
        tcp[23] = 6;
        for ports in [vec![], vec![9], vec![9, 61_188, 7]] {
            for ether_type in [None, Some(0x88B5)] {
                let selection = FrameFilter { udp_ports: ports.clone(), ether_type };
                let code = selection.filter();
                for port in [7, 8, 9, 61_188] {
                    assert_eq!(accepts(&code, &udp(port)), ports.contains(&port), "{selection:?} {port}");
                }
                assert_eq!(accepts(&code, &raw), ether_type.is_some());
                assert!(!accepts(&code, &tcp));
            }
        }
    }
}
