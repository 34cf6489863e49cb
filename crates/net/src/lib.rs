//! Sockets, kernel timestamps, real-time set-up and namespaces behind a safe face.
