// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    internal import NIOHPACK
    internal import NIOHTTP2

    /// Answers the request of an HTTP/2 stream with the same handler as for HTTP/1.1.
    struct StreamService: Sendable {
        let channel: ByteChannel
        /// The address of the client; nil if unknown.
        let address: SocketAddress?
        let configuration: ServerConfiguration
        let handler: any ClientHandler
        let counters: ServerCounters

        /// Answers a request and closes the stream.
        ///
        /// - Parameter hasEnded: whether the request has no content.
        func answer(_ head: HPACKHeaders, hasEnded: Bool) async {
            var isHandled = false
            do {
                let message = try StreamHead.message(head, limits: configuration.headLimits)
                try await answer(message, hasEnded: hasEnded, isHandled: &isHandled)
            } catch let fault as MessageFault {
                configuration.onFailure?(ProxyFailure(rejecting: fault, from: address))
                let response = Refusal.response(to: fault)
                // The handler records the responses to the requests that it gets.
                if !isHandled, let onRefusal = configuration.onRefusal {
                    var refused = RefusedRequest(response, reason: fault.message, from: address)
                    refused.method = head.first(name: ":method").map { RequestMethod(rawValue: $0) }
                    refused.target = head.first(name: ":path")
                    refused.version = HTTPVersion.http2.rawValue
                    onRefusal(refused)
                }
                let isHead = head.first(name: ":method") == "HEAD"
                try? await write(response, method: isHead ? .head : .get)
            } catch {
                // The client has gone, or the response failed; the client sees a reset of the stream.
            }
            // Content that is not needed is not awaited; a stream that has ended on both sides is already closed.
            channel.close()
        }

        private func answer(_ message: RequestMessage, hasEnded: Bool, isHandled: inout Bool) async throws {
            guard !message.framing.expectsUnknown else { throw Refusal.unknownExpectation }
            guard message.method != .connect else {
                throw MessageFault(501, message: "Tunnels over HTTP/2 are not supported.")
            }
            let (form, body) = content(of: message, hasEnded: hasEnded)
            let request = ClientRequest(
                method: message.method,
                target: message.target,
                version: .http2,
                fields: message.fields,
                body: form,
                remoteAddress: address,
                interim: { head in
                    // The server itself sends 100 and 101.
                    if head.status.isInformational, head.status.rawValue > 101 { send(head) }
                }
            )
            isHandled = true
            counters.begin()
            defer { counters.end() }
            let response = await handler.answer(request)
            if Task.isCancelled {
                response.body.discard()
                throw CancellationError()
            }
            if let fault = body?.fault {
                response.body.discard()
                throw fault
            }
            try await write(response, method: message.method)
        }

        private func content(of message: RequestMessage, hasEnded: Bool) -> (RequestBody, ClientBody?) {
            if hasEnded { return (.none, nil) }
            let length: Int? = if case .length(let count) = message.framing.content { count } else { nil }
            if length == 0 { return (.none, nil) }
            let body = ClientBody(
                length.map { .length(remaining: $0) } ?? .untilEnd(hasEnded: false),
                channel: channel,
                stall: configuration.bodyStall,
                awaitsContinue: message.fields.contains(.expect),
                sendContinue: { send(ResponseHead(status: 100)) }
            )
            return (.oneShot(length: length, body), body)
        }

        // MARK: Writing

        private func send(_ interim: ResponseHead) {
            send(
                StreamHead.fields(status: interim.status, fields: interim.fields, length: nil),
                isInterim: true,
                endsStream: false
            )
        }

        private func send(_ fields: HPACKHeaders, isInterim: Bool, endsStream: Bool) {
            if isInterim, !StreamHead.fits(fields) { return }
            let head = StreamBytes.Head(fields: fields, isInterim: isInterim, endsStream: endsStream)
            channel.channel.triggerUserOutboundEvent(head, promise: nil)
        }

        private func write(_ response: Response, method: RequestMethod) async throws {
            let plan = AnswerPlan(response, to: .init(method: method, version: .http11, keepsAlive: true))
            let length: Int? = if case .length(let count) = plan.framing.content { count } else { nil }
            let hasContent =
                switch plan.content {
                case .none: false
                case .bytes(let bytes): bytes.count > 0
                case .exactly, .chunked, .untilClose: true
                }
            let fields = StreamHead.fields(status: plan.status, fields: response.fields, length: length)
            guard StreamHead.fits(fields) else {
                response.body.discard()
                return try await write(Refusal.response(502, text: StreamHead.tooLarge), method: method)
            }
            send(fields, isInterim: false, endsStream: !hasContent)
            var body = BodyWriter(channel, sliceSize: configuration.sliceSize, stallLimit: configuration.writeStall)
            do {
                switch plan.content {
                case .none: response.body.discard()
                case .bytes(let bytes): try await body.write(bytes)
                case .exactly(let length, let source): try await body.write(source, exactly: length)
                case .chunked(let source), .untilClose(let source): try await body.write(source, exactly: nil)
                }
                guard hasContent else { return }
                try await finish()
            } catch {
                response.body.discard()
                throw error
            }
        }

        /// Ends the stream after everything was sent, for which the client has as long as it goes on reading.
        private func finish() async throws {
            try await channel.flush(stallLimit: configuration.writeStall)
            let ended = channel.eventLoop.makePromise(of: Void.self)
            let timer = channel.eventLoop.scheduleTask(in: configuration.writeStall) { [channel] in channel.close() }
            channel.channel.close(mode: .output, promise: ended)
            defer { timer.cancel() }
            try await ended.futureResult.get()
        }
    }

    /// Converts HTTP/2 heads to HTTP/1.1 heads, so that the same rules apply, and back.
    enum StreamHead {
        /// Why a head is not sent that does not fit.
        static let tooLarge = "the head of the response is larger than HTTP/2 can carry here"

        /// Whether the head of a response fits.
        static func fits(_ response: Response) -> Bool {
            let bytes = response.fields.reduce(0) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count + 8 }
            // Without what is added, and before letters outside ASCII, which take two bytes: far from the limit.
            if bytes * 8 <= StreamHead.frameSize { return true }
            return fits(fields(status: response.status, fields: response.fields, length: response.body.length))
        }

        /// Whether a head fits into a frame that every client reads: SwiftNIO never writes a CONTINUATION, and a head that does not
        /// fit ends the whole connection. That a client announces larger frames is not used here.
        static func fits(_ head: HPACKHeaders) -> Bool {
            var bytes = 0
            for (name, value, _) in head { bytes += name.utf8.count + value.utf8.count + 8 }
            // Huffman's code makes at most four bytes of one (RFC 7541, appendix B).
            if bytes * 4 <= StreamHead.frameSize { return true }
            // Without a table nothing is shorter for having been sent before.
            var encoder = HPACKEncoder(allocator: ByteBufferAllocator(), maxDynamicTableSize: 0)
            var block = ByteBuffer()
            guard (try? encoder.encode(headers: head, to: &block)) != nil else { return false }
            // The connection's own encoder may also announce the size of its table.
            return block.readableBytes + 64 <= StreamHead.frameSize
        }

        /// The largest frame that every client accepts (RFC 9113 §4.2).
        private static let frameSize = 16_384

        /// Creates the head of a request.
        ///
        /// Writes the head in the form of HTTP/1.1 and parses that, so that both versions have the same checks.
        ///
        /// - Throws: the error to send to the client.
        static func message(_ head: HPACKHeaders, limits: HeadLimits) throws(MessageFault) -> RequestMessage {
            var (method, path, authority): (String?, String?, String?) = (nil, nil, nil)
            var lines: [(name: String, value: String)] = []
            var cookies: [String] = []
            for (name, value, _) in head {
                guard isWritable(value) else {
                    throw MessageFault("The field \(name.prefix(64)) contains bytes that are not allowed in a field.")
                }
                switch name {
                case ":method": method = value
                case ":path": path = value
                case ":authority": authority = value
                case ":scheme": break
                case "cookie": cookies.append(value)
                case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
                    throw MessageFault("The field \(name) is only allowed in HTTP/1.1, not in HTTP/2.")
                default:
                    guard !name.isEmpty, name.utf8.allSatisfy({ FieldLines.isToken($0) }) else {
                        throw MessageFault("The name of a field is not valid.")
                    }
                    lines.append((name, value))
                }
            }
            // One line, as in HTTP/1.1 (RFC 9113 §8.2.3).
            if !cookies.isEmpty { lines.append(("cookie", cookies.joined(separator: "; "))) }
            guard let method, !method.isEmpty, method.utf8.allSatisfy({ FieldLines.isToken($0) }) else {
                throw MessageFault("The request has no method.")
            }
            let hosts = lines.filter { $0.name == "host" }
            if let authority {
                // A request with two hosts is ambiguous (RFC 9113 §8.3.1).
                guard hosts.allSatisfy({ $0.value.loweringASCII() == authority.loweringASCII() }) else {
                    throw MessageFault("The request has two different hosts.")
                }
                if hosts.isEmpty { lines.insert(("host", authority), at: 0) }
            }
            let target = method == "CONNECT" ? authority : path
            guard let target, target.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
                throw MessageFault("The request has no path.")
            }
            guard method == "CONNECT" || target.hasPrefix("/") || target == "*" else {
                throw MessageFault("The path of the request does not begin with a slash.")
            }
            var bytes: [UInt8] = []
            bytes += "\(method) \(target) HTTP/1.1\r\n".utf8
            for line in lines { bytes += "\(line.name): \(line.value)\r\n".utf8 }
            bytes += "\r\n".utf8
            guard bytes.count <= limits.bytes else {
                throw MessageFault(431, message: "The request's head is longer than \(limits.bytes) bytes.")
            }
            var outcome: Result<RequestMessage, MessageFault>?
            bytes.withUnsafeBytes { view in
                outcome = Result { () throws(MessageFault) in try RequestMessage(view, limits: limits) }
            }
            guard let message = try outcome?.get() else { throw MessageFault("The request cannot be read.") }
            return message
        }

        /// Whether a text can be written in a line; U+FFFD replaces bytes that are not text.
        private static func isWritable(_ value: String) -> Bool {
            value.unicodeScalars.allSatisfy { ($0.value >= 0x20 || $0 == "\t") && $0.value != 0x7F && $0 != "\u{FFFD}" }
        }

        /// Creates the head of a response.
        ///
        /// - Parameter length: the length of the content, if known.
        static func fields(status: StatusCode, fields: HeaderFields, length: Int?) -> HPACKHeaders {
            var head = HPACKHeaders()
            head.reserveCapacity(fields.count + 2)
            head.add(name: ":status", value: String(status.rawValue))
            for line in fields {
                switch line.name {
                case .connection, .transferEncoding, .contentLength, .keepAlive, .proxyConnection, .upgrade: continue
                default: head.add(name: line.name.canonicalName, value: text(line.value))
                }
            }
            if let length { head.add(name: "content-length", value: String(length)) }
            return head
        }

        /// A value whose UTF-8 bytes are those from the origin, which are ISO 8859-1 here; unchanged if that is not
        /// possible.
        private static func text(_ value: String) -> String {
            if value.utf8.allSatisfy({ $0 < 0x80 }) { return value }
            var bytes: [UInt8] = []
            for scalar in value.unicodeScalars {
                guard let byte = UInt8(exactly: scalar.value) else { return value }
                bytes.append(byte)
            }
            return String(validating: bytes, as: UTF8.self) ?? value
        }
    }
#endif
