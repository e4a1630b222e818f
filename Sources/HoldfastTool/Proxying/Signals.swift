// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Dispatch
    internal import Foundation
    internal import Synchronization

    /// The signals that end or reload the program.
    enum Signals {
        /// An element for each SIGTERM and SIGINT from now on; they then no longer end the program.
        ///
        /// A closed pipe at standard output, or a file at the limit of `ulimit -f`, does not end it either: the write
        /// fails.
        static func ending() -> AsyncStream<Void> {
            signal(SIGPIPE, SIG_IGN)
            signal(SIGXFSZ, SIG_IGN)
            return arriving([SIGTERM, SIGINT])
        }

        /// An element for each SIGHUP from now on, which then no longer ends the program.
        static func hangUps() -> AsyncStream<Void> { arriving([SIGHUP]) }

        private static func arriving(_ numbers: [Int32]) -> AsyncStream<Void> {
            AsyncStream(bufferingPolicy: .bufferingOldest(2)) { continuation in
                let sources = numbers.map { number in
                    signal(number, SIG_IGN)
                    let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
                    source.setEventHandler { continuation.yield() }
                    source.activate()
                    return SignalSource(source)
                }
                continuation.onTermination = { _ in
                    for source in sources { source.cancel() }
                }
            }
        }
    }

    /// The service manager that may have started this process: systemd, or another with its protocol (sd_notify).
    enum ServiceManager {
        /// Reports a state such as `READY=1`; does nothing if there is no service manager.
        static func tell(_ state: String) {
            #if os(Linux)
                guard let path = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"], path.utf8.count < 108 else {
                    return
                }
                var address = sockaddr_un()
                address.sun_family = sa_family_t(AF_UNIX)
                withUnsafeMutableBytes(of: &address.sun_path) { bytes in
                    bytes.copyBytes(from: path.utf8)
                    // An abstract name, which is not a file.
                    if path.hasPrefix("@") { bytes[0] = 0 }
                }
                let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
                guard descriptor >= 0 else { return }
                defer { close(descriptor) }
                let length = socklen_t(MemoryLayout<sa_family_t>.size + path.utf8.count)
                let text = Array(state.utf8)
                withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                        _ = sendto(descriptor, text, text.count, Int32(MSG_NOSIGNAL), address, length)
                    }
                }
            #endif
        }
    }

    /// A dispatch source that is kept until it is cancelled.
    private final class SignalSource: Sendable {
        private let source: Mutex<(any DispatchSourceSignal)?>

        init(_ source: sending any DispatchSourceSignal) {
            self.source = Mutex(source)
        }

        func cancel() {
            source.withLock { source in
                source?.cancel()
                source = nil
            }
        }
    }
#endif
