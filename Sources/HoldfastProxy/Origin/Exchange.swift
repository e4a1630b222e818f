// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    /// One request and its response on one connection.
    final class Exchange: Sendable {
        /// The limits of an exchange.
        struct Rules: Sendable {
            var headLimits = HeadLimits(bytes: 256 << 10, fieldLines: 256)
            var interimLimit = 32
            var stall = TimeAmount.seconds(60)
        }

        private struct State {
            var wasHeadSent = false
            var wasBodySent = false
            var hasAnswer = false
            var isPersistent = false
            var isOver = false
            var upload: Upload?
        }

        /// Content up to this length is sent together with the head.
        private static let joinedLength = 64 << 10

        private let connection: OriginConnection
        private let pool: OriginPool
        private let rules: Rules
        private let state = Mutex(State())

        init(on connection: OriginConnection, of pool: OriginPool, rules: Rules) {
            self.connection = connection
            self.pool = pool
            self.rules = rules
        }

        var channel: ByteChannel { connection.channel }
        var stall: TimeAmount { rules.stall }

        /// How far it has come, or may have come.
        var progress: TransportProgress {
            let (state, isUploaded) = state.withLock { ($0, $0.wasBodySent || $0.upload?.isDone == true) }
            return isUploaded ? .bodySent : state.wasHeadSent ? .headSent : .notSent
        }

        /// Whether the connection had been used and broke before the first byte of a response, as happens if the server
        /// closes an idle connection just when the request is on its way (RFC 9112 §9.3.1).
        func isStale(_ error: any Error) -> Bool {
            let (hasAnswer, upload) = state.withLock { ($0.hasAnswer, $0.upload) }
            guard connection.isReused, !hasAnswer, upload?.failure == nil, let fault = error as? ChannelFault else {
                return false
            }
            return fault.kind == .broken
        }

        // MARK: Sending

        /// Sends head and content, or begins to.
        func send(_ request: OutgoingRequest, content: OutgoingContent) async throws {
            let framing = request.framing(of: content.length)
            let allocator = channel.channel.allocator
            let source: any ByteSource
            switch content {
            case .bytes(let bytes) where bytes.count <= Exchange.joinedLength:
                var buffer = request.head(framing, room: bytes.count, allocator: allocator)
                _ = bytes.withUnsafeBytes { buffer.writeBytes($0) }
                try await channel.write(buffer, stallLimit: stall)
                return state.withLock { state in
                    state.wasHeadSent = true
                    state.wasBodySent = true
                }
            case .bytes(let bytes): source = BytesContent(bytes)
            case .source(let own, _): source = own
            }
            try await channel.write(request.head(framing, allocator: allocator), stallLimit: stall)
            if framing == .none || framing == .length(0) {
                source.cancel()
                return state.withLock { state in
                    state.wasHeadSent = true
                    state.wasBodySent = true
                }
            }
            let upload = Upload(source, framing: framing, over: channel, stall: stall)
            state.withLock { state in
                state.wasHeadSent = true
                state.upload = upload
            }
            // A caller on the connection's loop has sources that belong there; others may be slow.
            upload.start(on: channel.eventLoop.inEventLoop ? EventLoopExecutor(channel.eventLoop) : nil)
        }

        // MARK: Receiving

        /// Waits for the final head, and returns the response.
        ///
        /// - Parameters:
        ///   - end: can interrupt the wait for the head, and nothing later.
        ///   - onInterim: is called with interim responses, except 100.
        func response(
            to method: RequestMethod,
            url: URL?,
            end: AttemptEnd,
            onInterim: (ResponseHead) -> Void
        ) async throws -> Response {
            var (head, rest) = try await head(onInterim)
            // Before the connection may go back to the pool: then it belongs to another exchange.
            guard end.finish() else { throw AttemptEnd.BrokenOff() }
            let framing = try ResponseFraming.decide(&head, answering: method)
            let status = head.head.status
            let upload = state.withLock { state in
                state.isPersistent = framing.isPersistent
                return state.upload
            }
            // A server that rejects the request does not want the rest (RFC 9112 §9.5).
            if status.rawValue >= 300 { upload?.stop() }
            var decoder = BodyDecoder(framing.body)
            let first = try decoder.decode(rest)
            rest.clear()
            let body: ResponseBody
            if decoder.isAtEnd {
                finish(reusable: !decoder.hasSurplus)
                body = ResponseBody(first)
            } else {
                let length: Int? = if case .length(let length) = framing.body { length } else { nil }
                body = ResponseBody(OriginBody(self, first: first, decoder: decoder), length: length)
            }
            return Response(status: status, fields: head.head.fields, body: body, url: url)
        }

        /// The final head, and the bytes that arrived after it.
        private func head(
            _ onInterim: (ResponseHead) -> Void
        ) async throws -> (head: ResponseHeadParser.Head, rest: ByteBuffer) {
            var parser = ResponseHeadParser(limits: rules.headLimits)
            var interimCount = 0
            while true {
                guard var buffer = try await channel.read() else { throw ChannelFault(.broken) }
                state.withLock { $0.hasAnswer = true }
                while buffer.readableBytes > 0 {
                    var found: (head: ResponseHeadParser.Head, count: Int)?
                    try buffer.withUnsafeReadableBytes { bytes in found = try parser.read(bytes) }
                    guard let found else { break }
                    buffer.moveReaderIndex(forwardBy: found.count)
                    let status = found.head.head.status
                    guard status.isInformational else { return (found.head, buffer) }
                    guard status != 101 else {
                        throw MessageFault("The server switched protocols without being asked.")
                    }
                    interimCount += 1
                    guard interimCount <= rules.interimLimit else {
                        throw MessageFault("There were more than \(rules.interimLimit) interim responses.")
                    }
                    if status != 100 { onInterim(found.head.head) }
                }
            }
        }

        // MARK: Ending

        /// Ends the exchange, once: the connection goes back to the pool, or is closed.
        func finish(reusable: Bool) {
            let (isFirst, keeps, upload) = state.withLock { state in
                defer { state.isOver = true }
                let isUploaded = state.wasBodySent || state.upload?.isDone == true
                return (!state.isOver, reusable && state.isPersistent && isUploaded, state.upload)
            }
            guard isFirst else { return }
            upload?.stop()
            if keeps { pool.giveBack(connection) } else { pool.discard(connection) }
        }

        /// The error for a failure before the head.
        func failure(_ error: any Error) -> any Error {
            let upload = state.withLock { $0.upload }
            return OriginFailure.serviceError(
                for: upload?.failure ?? error,
                progress: progress,
                connectionReused: connection.isReused
            )
        }

        /// The error of an attempt whose deadline has passed.
        func timeout() -> ServiceError {
            OriginFailure.timeout(progress: progress, connectionReused: connection.isReused)
        }

        /// The error for a failure of the body.
        func bodyFailure(_ error: any Error, hasDelivered: Bool) -> any Error {
            let upload = state.withLock { $0.upload }
            return OriginFailure.serviceError(
                for: upload?.failure ?? error,
                progress: hasDelivered ? .bytesReceived : .headReceived,
                connectionReused: connection.isReused
            )
        }
    }

    /// Ends an attempt from outside before its head has arrived: by the caller's cancellation or the deadline,
    /// whichever comes first.
    final class AttemptEnd: Sendable {
        /// Why it ended.
        enum Reason: Sendable, Hashable {
            case cancelled, deadline
        }

        /// Thrown by an interrupted operation; the catcher checks the ``reason``.
        struct BrokenOff: Error {}

        private struct State {
            var reason: Reason?
            var isOver = false
            var action: (@Sendable () -> Void)?
        }

        private let state = Mutex(State())

        /// Why the attempt was ended; nil if it was not.
        var reason: Reason? { state.withLock { $0.reason } }

        /// Sets how to interrupt the current operation, replacing the previous action. Called at once if the attempt
        /// has ended.
        func whenEnded(_ action: @escaping @Sendable () -> Void) {
            let hasEnded = state.withLock { state in
                guard !state.isOver else { return false }
                state.action = state.reason == nil ? action : nil
                return state.reason != nil
            }
            if hasEnded { action() }
        }

        /// Ends the attempt; does nothing if it is over.
        func end(_ reason: Reason) {
            let action: (@Sendable () -> Void)? = state.withLock { state in
                guard !state.isOver, state.reason == nil else { return nil }
                state.reason = reason
                defer { state.action = nil }
                return state.action
            }
            action?()
        }

        /// The head has arrived: from now on nothing ends the attempt.
        ///
        /// - Returns: false if it was ended before.
        func finish() -> Bool {
            state.withLock { state in
                guard state.reason == nil else { return false }
                state.isOver = true
                state.action = nil
                return true
            }
        }
    }
#endif
