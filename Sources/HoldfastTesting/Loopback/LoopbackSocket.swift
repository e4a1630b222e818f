// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Musl)
    private import Musl
#else
    private import Glibc
#endif

/// A non-blocking TCP socket whose waits also end when the server stops.
///
/// Used by one thread; ``end(resetting:)`` must be the last call, and the descriptor is closed with the last reference.
final class LoopbackSocket {
    /// Why nothing more can be sent or received.
    enum Ending: Error {
        case peerClosed, peerReset, stopped
    }

    private let descriptor: Int32
    private let stop: LoopbackGate

    init(adopting descriptor: Int32, stop: LoopbackGate) {
        self.descriptor = descriptor
        self.stop = stop
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        #if canImport(Darwin)
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
        #endif
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit { close(descriptor) }

    /// Receives at least one byte; nil if the peer has closed its side.
    func receive(upTo count: Int = 65_536) throws(Ending) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        while true {
            let received = recv(descriptor, &bytes, count, 0)
            if received > 0 {
                bytes.removeSubrange(received...)
                return bytes
            }
            if received == 0 { return nil }
            if errno != EAGAIN && errno != EINTR { throw .peerReset }
            try wait(for: Int16(POLLIN))
        }
    }

    /// Reads and discards until the peer has closed its side.
    func drain() throws(Ending) { while try receive() != nil {} }

    /// Sends all of `bytes`.
    ///
    /// - Parameter onTaken: called for each part after the system has taken it.
    func send(_ bytes: some RandomAccessCollection<UInt8>, onTaken: (Int) -> Void = { _ in }) throws(Ending) {
        var sent = 0
        while sent < bytes.count {
            let outcome: Int? = bytes.withContiguousStorageIfAvailable { all in
                #if canImport(Darwin)
                    let flags: Int32 = 0
                #else
                    let flags = Int32(MSG_NOSIGNAL)
                #endif
                let rest = UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: all[sent...]))
                return systemSend(descriptor, bytes: rest.baseAddress, count: rest.count, flags: flags)
            }
            guard let outcome else { return try send(Array(bytes), onTaken: onTaken) }
            if outcome >= 0 {
                sent += outcome
                onTaken(outcome)
            } else if errno == EAGAIN || errno == EINTR {
                try wait(for: Int16(POLLOUT))
            } else {
                throw .peerReset
            }
        }
    }

    /// Waits until `gate` opens; throws if the peer or the server ends first. Without a gate it always throws.
    func wait(at gate: LoopbackGate?) throws(Ending) {
        gate?.arrive()
        // Unread bytes would hide an end of the connection behind them, so then only a reset shows the end.
        var watchesInput = true
        while true {
            var waits = [
                pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: descriptor, events: watchesInput ? Int16(POLLIN) : 0, revents: 0),
            ]
            if let gate { waits.append(pollfd(fd: gate.descriptor, events: Int16(POLLIN), revents: 0)) }
            guard poll(&waits, nfds_t(waits.count), -1) > 0 else { continue }
            if waits[0].revents != 0 { throw .stopped }
            if waits.count > 2 && waits[2].revents != 0 { return }
            if waits[1].revents & Int16(POLLERR) != 0 { throw .peerReset }
            guard waits[1].revents != 0 else { continue }
            var byte: UInt8 = 0
            let peeked = recv(descriptor, &byte, 1, Int32(MSG_PEEK_FLAG))
            if peeked == 0 { throw .peerClosed }
            if peeked < 0 && errno != EAGAIN && errno != EINTR { throw .peerReset }
            if peeked > 0 { watchesInput = false }
        }
    }

    /// Closes the connection normally, or with a TCP reset, which a linger time of zero causes.
    func end(resetting: Bool = false) {
        if resetting {
            var lingering = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &lingering, socklen_t(MemoryLayout<linger>.size))
        } else {
            shutdown(descriptor, Int32(SHUT_WRITING))
        }
    }

    private func wait(for events: Int16) throws(Ending) {
        while true {
            var waits = [
                pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: descriptor, events: events, revents: 0),
            ]
            guard poll(&waits, nfds_t(waits.count), -1) > 0 else { continue }
            if waits[0].revents != 0 { throw .stopped }
            if waits[1].revents != 0 { return }
        }
    }
}

#if canImport(Darwin)
    private let MSG_PEEK_FLAG = MSG_PEEK
    private let SHUT_WRITING = SHUT_WR
    private func systemSend(_ socket: Int32, bytes: UnsafeRawPointer?, count: Int, flags: Int32) -> Int {
        Darwin.send(socket, bytes, count, flags)
    }
#elseif canImport(Musl)
    private let MSG_PEEK_FLAG = MSG_PEEK
    private let SHUT_WRITING = SHUT_WR
    private func systemSend(_ socket: Int32, bytes: UnsafeRawPointer?, count: Int, flags: Int32) -> Int {
        Musl.send(socket, bytes, count, flags)
    }
#else
    private let MSG_PEEK_FLAG = MSG_PEEK
    private let SHUT_WRITING = SHUT_WR
    private func systemSend(_ socket: Int32, bytes: UnsafeRawPointer?, count: Int, flags: Int32) -> Int {
        Glibc.send(socket, bytes, count, flags)
    }
#endif
