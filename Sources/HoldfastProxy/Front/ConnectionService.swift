// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore

    /// Serves one connection, request by request, within the connection's task.
    struct ConnectionService {
        private let connection: ClientConnection
        private let channel: ByteChannel
        private let configuration: ServerConfiguration
        private var writer: AnswerWriter
        private var isFirst = true
        /// The request that was read last and that the handler has not got.
        private var unhandled: (method: RequestMethod, target: String, version: HTTPVersion)?
        /// Whether the handler has got the current request, so that it records the response itself.
        private var isHandled = false

        init(_ connection: ClientConnection) {
            self.connection = connection
            channel = connection.channel
            configuration = connection.configuration
            writer = AnswerWriter(channel, configuration: configuration)
        }

        mutating func run() async {
            if await serve() { await linger() }
            channel.close()
        }

        /// Serves requests; returns whether a last response was sent, which the client must be able to read.
        private mutating func serve() async -> Bool {
            do {
                while let (message, rest) = try await nextMessage() {
                    guard try await answer(message, rest: rest) else { return true }
                    isFirst = false
                }
                // The rest of a response is sent, however the connection ended.
                try await channel.flush(stallLimit: configuration.lingerTimeout)
                return false
            } catch let fault as MessageFault {
                connection.becomeBusy()
                return await refuse(fault)
            } catch {
                return false
            }
        }

        // MARK: Reading

        private mutating func nextMessage() async throws -> (RequestMessage, rest: ByteBuffer)? {
            guard isFirst || !connection.isDraining else { return nil }
            (unhandled, isHandled) = (nil, false)
            connection.becomeIdle()
            var parser = RequestHeadParser(limits: configuration.headLimits)
            var deadline = channel.eventLoop.now + (isFirst ? configuration.headTimeout : configuration.idleTimeout)
            while true {
                var bytes: ByteBuffer
                do {
                    guard let read = try await channel.read(by: deadline) else { return nil }
                    bytes = read
                } catch let fault as ChannelFault where fault.kind == .readTimedOut {
                    guard !parser.isUntouched else { return nil }
                    throw Refusal.headTimeout
                } catch is CancellationError where parser.isUntouched {
                    return nil
                }
                let wasUntouched = parser.isUntouched
                if let message = try parser.parse(&bytes) { return (message, bytes) }
                if wasUntouched, !parser.isUntouched {
                    connection.awaitClient()
                    deadline = channel.eventLoop.now + configuration.headTimeout
                }
            }
        }

        // MARK: Answering

        /// Responds to one request; returns whether the connection is kept.
        private mutating func answer(_ message: RequestMessage, rest: ByteBuffer) async throws -> Bool {
            unhandled = (message.method, message.target.text, message.version)
            guard !message.framing.expectsUnknown else { throw Refusal.unknownExpectation }
            let interim = InterimWriter(channel, allows: message.version == .http11)
            var rest = rest
            let (form, body) = try content(of: message, in: &rest, interim: interim)
            channel.putBack(rest)
            let request = ClientRequest(
                method: message.method,
                target: message.target,
                version: message.version,
                fields: message.fields,
                body: form,
                remoteAddress: channel.channel.remoteAddress,
                interim: { interim.send($0) }
            )
            isHandled = true
            connection.beginAnswer()
            defer { connection.endAnswer() }
            var refused: Response?
            if message.method == .connect || message.fields.contains(.upgrade) {
                switch await connection.handler.tunnel(request) {
                case .none: break
                case .refused(let response): refused = response
                case .open(let other, let head, let ended):
                    interim.end()
                    // From now on, if the client stops sending, that ends one direction and not the work.
                    connection.becomeBusy()
                    var passed = (bytes: 0, isWhole: false)
                    defer {
                        other.close()
                        ended(passed.bytes, passed.isWhole)
                    }
                    try await channel.write(head, stallLimit: configuration.writeStall)
                    passed = await Tunnel.relay(channel, with: other, stallLimit: configuration.writeStall)
                    return false
                }
            }
            let response = if let refused { refused } else { await connection.handler.answer(request) }
            interim.end()
            if Task.isCancelled {
                response.body.discard()
                throw CancellationError()
            }
            var mustClose = connection.isDraining
            if let body {
                if let fault = body.fault {
                    response.body.discard()
                    throw fault
                }
                switch body.rest {
                case .nothing: break
                // How much of chunked content follows cannot be known, and a client must learn that its connection ends.
                case .some(let count): if count.map({ $0 > configuration.unreadLimit }) ?? true { mustClose = true }
                case .unknown: mustClose = true
                }
            }
            let keepsAlive = message.framing.keepsAlive && !mustClose
            let plan = AnswerPlan(
                response,
                to: .init(method: message.method, version: message.version, keepsAlive: keepsAlive)
            )
            // A body in memory is sent even to a client that has closed its side: if it has gone, the write fails soon.
            if case .bytes = plan.content { connection.becomeBusy() }
            guard try await writer.write(plan, response: response) else { return false }
            return await settle(body)
        }

        /// The content as the handler sees it and, for a stream, its source.
        private func content(
            of message: RequestMessage,
            in rest: inout ByteBuffer,
            interim: InterimWriter
        ) throws(MessageFault) -> (RequestBody, ClientBody?) {
            let decoder: ContentDecoder
            let length: Int?
            switch message.framing.content {
            case .none:
                return (.none, nil)
            case .length(let count):
                length = count
                decoder = .length(remaining: count)
            case .chunked:
                length = nil
                decoder = .chunked(ChunkedDecoder())
            }
            if rest.readableBytes > 0, let bytes = try decoder.whole(in: &rest, limit: configuration.sliceSize) {
                return (.bytes(bytes), nil)
            }
            let body = ClientBody(
                decoder,
                channel: channel,
                stall: configuration.bodyStall,
                // A client whose content is already arriving does not wait.
                awaitsContinue: message.framing.awaitsContinue && rest.readableBytes == 0,
                sendContinue: { interim.sendContinue() }
            )
            return (.oneShot(length: length, body), body)
        }

        /// Drops the content that the handler did not read; returns whether the connection can continue.
        private func settle(_ body: ClientBody?) async -> Bool {
            guard let body else { return true }
            switch body.rest {
            case .nothing: return true
            case .some:
                // The response was sent: from now on the connection waits for its client.
                connection.awaitClient()
                return await body.drop(upTo: configuration.unreadLimit)
            case .unknown:
                body.cancel()
                return false
            }
        }

        // MARK: Ending

        /// Responds that there are too many connections, reads nothing, and closes.
        mutating func refuseConnection() async {
            let response = Refusal.tooManyConnectionsResponse()
            tell(response, reason: Refusal.tooManyConnections)
            if await sendLast(response) { await linger() }
            channel.close()
        }

        private mutating func refuse(_ fault: MessageFault) async -> Bool {
            configuration.onFailure?(ProxyFailure(rejecting: fault, from: channel.channel.remoteAddress))
            let response = Refusal.response(to: fault)
            tell(response, reason: fault.message)
            return await sendLast(response)
        }

        /// Reports a response to a request that the handler has not got; it reports the others.
        private func tell(_ response: Response, reason: String) {
            guard let onRefusal = configuration.onRefusal, !isHandled else { return }
            var refused = RefusedRequest(response, reason: reason, from: channel.channel.remoteAddress)
            if let unhandled {
                (refused.method, refused.target) = (unhandled.method, unhandled.target)
                refused.version = unhandled.version.rawValue
            }
            onRefusal(refused)
        }

        private mutating func sendLast(_ response: Response) async -> Bool {
            let plan = AnswerPlan(response, to: .init(method: .get, version: .http11, keepsAlive: false))
            do {
                _ = try await writer.write(plan, response: response)
                return true
            } catch {
                return false
            }
        }

        /// Ends this side and reads on for a while, because closing with unread bytes would reset the connection, and a
        /// reset overtakes the response (RFC 9112 §9.6).
        private func linger() async {
            do {
                try await channel.flush(stallLimit: configuration.lingerTimeout)
                connection.awaitClient()
                channel.closeOutput()
                let deadline = channel.eventLoop.now + configuration.lingerTimeout
                while channel.eventLoop.now < deadline, try await channel.read(by: deadline) != nil {}
            } catch {
                return
            }
        }
    }
#endif
