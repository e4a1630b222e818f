// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    /// The open connections of a server and who waits for their end; a value that judges without effects.
    struct ConnectionRegistry {
        /// What becomes of a new connection.
        enum Admission: Sendable, Hashable {
            case served
            /// It is told that there are too many.
            case refused
            /// It is closed without a word.
            case dropped
        }

        typealias Waiter = CheckedContinuation<Void, Never>

        static let refusalLimit = 64

        private let limit: Int
        private var served: [ObjectIdentifier: ClientConnection] = [:]
        private var refused: [ObjectIdentifier: ByteChannel] = [:]
        private var waiters: [Waiter] = []
        private(set) var acceptedCount = 0
        private(set) var refusedCount = 0
        private var isClosed = false

        init(limit: Int) {
            self.limit = max(limit, 1)
        }

        var openCount: Int { served.count + refused.count }

        /// Takes a connection in; nothing is taken in once the registry is closed.
        mutating func admit(_ connection: ClientConnection) -> Admission {
            guard !isClosed else { return .dropped }
            guard served.count >= limit else {
                acceptedCount += 1
                served[ObjectIdentifier(connection.channel)] = connection
                return .served
            }
            refusedCount += 1
            guard refused.count < ConnectionRegistry.refusalLimit else { return .dropped }
            refused[ObjectIdentifier(connection.channel)] = connection.channel
            return .refused
        }

        /// A connection has closed; answers those to resume, when it was the last one.
        mutating func remove(_ channel: ByteChannel) -> [Waiter] {
            served[ObjectIdentifier(channel)] = nil
            refused[ObjectIdentifier(channel)] = nil
            return openCount == 0 ? takeWaiters() : []
        }

        /// Closes the registry to new connections; the connections that are left.
        mutating func close() -> (served: [ClientConnection], refused: [ByteChannel]) {
            isClosed = true
            return (Array(served.values), Array(refused.values))
        }

        /// Lets a waiter wait for the last connection; false when there is none.
        mutating func wait(_ waiter: Waiter) -> Bool {
            guard openCount > 0 else { return false }
            waiters.append(waiter)
            return true
        }

        private mutating func takeWaiters() -> [Waiter] {
            defer { waiters = [] }
            return waiters
        }
    }
#endif
