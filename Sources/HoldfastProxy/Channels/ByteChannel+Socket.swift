// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOCore

    #if canImport(Darwin)
        private import Darwin
    #elseif canImport(Glibc)
        private import Glibc
    #elseif canImport(Musl)
        private import Musl
    #endif

    extension ByteChannel {
        /// Closes at once with a reset, so that a peer that counts on the end of the connection sees that something is missing.
        package func reset() {
            if let options = channel as? any SocketOptionProvider {
                let work = { @Sendable in _ = options.setSoLinger(linger(l_onoff: 1, l_linger: 0)) }
                if eventLoop.inEventLoop { work() } else { eventLoop.execute(work) }
            }
            close()
        }

        /// Gives way to the other channels of the event loop, which `Task.yield()` does not: a loop runs what is to run now before
        /// it looks for what has arrived.
        package func yield() async {
            await withCheckedContinuation { continuation in
                eventLoop.scheduleTask(in: .microseconds(50)) {}.futureResult.whenComplete { _ in continuation.resume()
                }
            }
        }
    }
#endif
