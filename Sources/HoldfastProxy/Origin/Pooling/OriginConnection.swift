// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOCore
    private import Synchronization

    /// One connection to an origin, from its opening on.
    final class OriginConnection: Sendable {
        let id: PoolState.ID
        let key: OriginKey
        let channel: ByteChannel
        private let exchanges = Atomic(0)

        init(id: PoolState.ID, key: OriginKey, channel: ByteChannel) {
            self.id = id
            self.key = key
            self.channel = channel
        }

        /// The loop it lives on, as the pool's book knows it.
        var loop: PoolState.Loop { ObjectIdentifier(channel.eventLoop) }

        /// Whether it carried an exchange before the one that it is handed out for.
        var isReused: Bool { exchanges.load(ordering: .relaxed) > 1 }

        /// Whether a request can be sent on it: it stands, and the server has sent nothing that nobody asked for.
        var isUsable: Bool { channel.isActive && !channel.hasInputOrEnded }

        /// Notes that it is handed out.
        func beginExchange() {
            exchanges.add(1, ordering: .relaxed)
        }
    }
#endif
