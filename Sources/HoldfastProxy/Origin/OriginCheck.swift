// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore

    /// An active check of a reverse proxy's origins: a periodic GET.
    ///
    /// A status of 200 to 399 passes; any other status or a timeout fails. An origin is down after two failures in a
    /// row, and up after two passes. At first each origin is up.
    public struct OriginCheck: Sendable, Hashable {
        /// The path and query of the check.
        public var path: String
        /// The time between two checks of an origin; 5 s by default, 1 s to 1 h.
        public var interval: Duration = .seconds(5)

        /// Creates a check for a path.
        public init(path: String) {
            self.path = path
        }

        /// The time limit for the response of an origin.
        var timeout: Duration { min(interval, .seconds(5)) }

        func validate() throws(ProxyConfigurationError) {
            guard path.hasPrefix("/"), path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") })
            else {
                throw ProxyConfigurationError("'\(path)' is not a path; use one like /healthz")
            }
            guard interval >= .seconds(1), interval <= .seconds(3_600) else {
                throw ProxyConfigurationError("the time between checks must be from 1s to 1h")
            }
        }
    }

    /// The result of an origin's checks.
    struct CheckedHealth: Sendable, Hashable {
        static let failuresForDown = 2
        static let passesForUp = 2

        private(set) var isUp = true
        private(set) var passed = 0
        private(set) var failed = 0
        /// The number of consecutive checks with a result opposite to ``isUp``.
        private var against = 0

        /// Records the result of a check.
        ///
        /// - Returns: whether the origin went down or came up with this result.
        mutating func note(hasPassed: Bool) -> Bool {
            if hasPassed { passed &+= 1 } else { failed &+= 1 }
            against = hasPassed == isUp ? 0 : against + 1
            guard against >= (isUp ? CheckedHealth.failuresForDown : CheckedHealth.passesForUp) else { return false }
            isUp.toggle()
            against = 0
            return true
        }
    }

    /// Checks the servers of a group until its task is cancelled.
    struct OriginChecker: Sendable {
        let check: OriginCheck
        let group: OriginGroup
        let clock: any HoldfastClock
        /// Checks a server; returns what is wrong, or nil.
        let probe: @Sendable (OriginGroup.Member) async -> String?
        /// Called when a server goes down.
        var onFailure: (@Sendable (ProxyFailure) -> Void)?

        /// Each server has its own checks, so that a slow server does not delay those of others.
        func run() async {
            await withTaskGroup { tasks in
                for index in group.members.indices {
                    tasks.addTask { await run(index) }
                }
            }
        }

        private func run(_ index: Int) async {
            let member = group.members[index]
            while !Task.isCancelled {
                let begun = clock.now
                let trouble = await probe(member)
                // A cancelled check says nothing about the server.
                guard !Task.isCancelled else { return }
                if group.note(index, hasPassed: trouble == nil), let trouble {
                    let text =
                        "the check GET \(check.path) of \(member.origin) fails, so the origin is not used: \(trouble)"
                    onFailure?(ProxyFailure(.origin, text: text))
                }
                guard (try? await clock.sleep(until: begun.advanced(by: check.interval))) != nil else { return }
            }
        }
    }

    extension OriginTransport {
        /// Checks a server over a separate connection.
        ///
        /// - Returns: what is wrong, or nil.
        func check(_ member: OriginGroup.Member, path: String, within limit: Duration) async -> String? {
            let deadline = NIODeadline.now() + limit.timeAmount
            do {
                let channel = try await tunnel(to: member.key)
                defer { channel.close() }
                var head = channel.channel.allocator.buffer(capacity: 256)
                head.writeString("GET \(path) HTTP/1.1\r\nHost: \(member.authority)\r\n")
                head.writeStaticString("User-Agent: holdfast-check\r\nAccept: */*\r\nConnection: close\r\n\r\n")
                try await channel.write(head)
                var parser = ResponseHeadParser()
                while let status = try await channel.readHead(&parser, by: deadline)?.status {
                    if status.isInformational { continue }
                    return (200...399).contains(status.rawValue) ? nil : "\(status)"
                }
                return "it closed the connection without a response"
            } catch let fault as ChannelFault where fault.kind == .readTimedOut {
                return "no response within \(limit)"
            } catch {
                return "\(error)"
            }
        }
    }
#endif
