// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import Holdfast
    internal import HoldfastSemantics
    package import NIOCore
    private import Synchronization

    /// The reply to a request for a tunnel or another protocol.
    package enum TunnelOffer: Sendable {
        /// It does not ask for one, and is answered like any other.
        case none
        /// There is none, with a response that says why.
        case refused(Response)
        /// Bytes go both ways from now on.
        ///
        /// - Parameters:
        ///   - head: the first bytes for the client.
        ///   - ended: is called with the number of bytes that went to the client, and whether that is all that came.
        case open(ByteChannel, head: ByteBuffer, ended: @Sendable (_ bytes: Int, _ isWhole: Bool) -> Void)
    }

    /// When bytes last moved, in either direction.
    private final class LastMove: Sendable {
        private let nanoseconds = Atomic(NIODeadline.now().uptimeNanoseconds)

        var time: NIODeadline { .uptimeNanoseconds(nanoseconds.load(ordering: .relaxed)) }

        func note() {
            nanoseconds.store(NIODeadline.now().uptimeNanoseconds, ordering: .relaxed)
        }
    }

    /// Passes bytes between two connections, until both sides have ended or nothing has moved for too long.
    enum Tunnel {
        /// How long both sides may send nothing.
        static let idleLimit = TimeAmount.hours(1)

        /// Passes bytes on; the caller has to close both channels.
        ///
        /// - Parameters:
        ///   - stallLimit: how long a side may read nothing.
        /// - Returns: how many bytes went to the client, and whether that is all until the other side ended.
        static func relay(
            _ client: ByteChannel,
            with other: ByteChannel,
            stallLimit: TimeAmount
        ) async -> (bytes: Int, isWhole: Bool) {
            let moved = LastMove()
            return await withTaskGroup(of: (bytes: Int, isDown: Bool, isWhole: Bool).self) { group in
                for isDown in [true, false] {
                    let (from, to) = isDown ? (other, client) : (client, other)
                    group.addTask {
                        var bytes = 0
                        do {
                            while true {
                                let last = moved.time
                                do {
                                    guard let chunk = try await from.read(by: last + idleLimit) else { break }
                                    moved.note()
                                    bytes += chunk.readableBytes
                                    try await to.write(chunk, stallLimit: stallLimit)
                                } catch let fault as ChannelFault where fault.kind == .readTimedOut {
                                    // The other direction may have moved in the meantime.
                                    if moved.time == last { throw fault }
                                }
                            }
                            try await to.flush(stallLimit: stallLimit)
                            to.closeOutput()
                            return (bytes, isDown, true)
                        } catch {
                            return (bytes, isDown, false)
                        }
                    }
                }
                var down = (bytes: 0, isWhole: false)
                for await part in group {
                    if part.isDown { down = (part.bytes, part.isWhole) }
                    // A broken side can neither send nor receive any more.
                    if !part.isWhole {
                        client.close()
                        other.close()
                    }
                }
                return down
            }
        }
    }
#endif
