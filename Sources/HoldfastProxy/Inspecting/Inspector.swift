// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    public import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    /// Serves a page on this machine that shows what a cache does: hit rate and traffic, entries, calls, origins, and
    /// buttons to purge.
    ///
    ///     let model = InspectorModel(cache: cache)
    ///     configuration.observers.append(model)
    ///     // … make the pipeline with `cache`, `configuration` and a retrier factory …
    ///     let inspector = Inspector(model: model, governor: retrierFactory.governor)
    ///     let port = try await inspector.start(port: 9090)
    ///     // … until the proxy ends:
    ///     await inspector.stop()
    ///
    /// It only listens on 127.0.0.1, and does not answer requests of other machines, of other sites' pages, under other
    /// host names, or through a proxy that identifies itself. It shows no credentials. Its own requests do not count as
    /// requests to the cache.
    ///
    /// A program that forwards requests to any host must not forward to its port, because those requests would come
    /// from this machine.
    public final class Inspector: Sendable {
        private let model: InspectorModel
        private let governor: RetryGovernor?
        private let server = Mutex<HTTPServer?>(nil)

        /// Creates an inspector that does not listen yet.
        ///
        /// - Parameters:
        ///   - model: the recorded data; add it to the observers of the pipeline.
        ///   - governor: the governor whose budgets are shown, from the pipeline's retrier factory; nil, the default:
        ///     none are shown.
        public init(model: InspectorModel, governor: RetryGovernor? = nil) {
            self.model = model
            self.governor = governor
        }

        /// The port; nil before the start and after the end.
        public var port: Int? { server.withLock { $0 }?.port }

        /// Starts listening on 127.0.0.1; a server from an earlier start is stopped first.
        ///
        /// - Parameter port: 0 for a free one.
        /// - Returns: the port.
        /// - Throws: the system's error if the port is in use.
        @discardableResult
        public func start(port: Int) async throws -> Int {
            await stop()
            let server = try await AdminServer.start(at: .host("127.0.0.1", port: port)) { [model, governor] own in
                let guarding = InspectorGuard(port: own ?? port)
                let responder = InspectorResponder(model: model, governor: governor, guarding: guarding)
                return { await responder.answer($0) }
            }
            self.server.withLock { $0 = server }
            return server.port ?? port
        }

        /// Stops the server and closes its connections.
        public func stop() async {
            let ended = server.withLock { server in
                defer { server = nil }
                return server
            }
            await ended?.close()
        }
    }

    /// Passes the requests of a server on once there is a responder, which is made only when the server listens and its
    /// port is known.
    final class DeferredResponder: ClientHandler {
        typealias Answer = @Sendable (InspectorRequest) async -> Response

        // A mutex that held the closure itself would wrap it once more at each look, and every answer would take longer than the last.
        private struct Responder {
            let answer: Answer
        }

        private let responder = Mutex<Responder?>(nil)

        func open(_ respond: @escaping Answer) {
            responder.withLock { $0 = Responder(answer: respond) }
        }

        func answer(_ request: ClientRequest) async -> Response {
            guard let responder = responder.withLock({ $0 }) else {
                return Response(status: 503, source: .synthesized)
            }
            return await responder.answer(
                InspectorRequest(
                    method: request.method,
                    target: request.target.text,
                    fields: request.fields,
                    body: request.body,
                    remoteAddress: request.remoteAddress?.ipAddress
                )
            )
        }
    }

    /// A request to the inspector, whatever server it came from.
    struct InspectorRequest: Sendable {
        let method: RequestMethod
        /// As in the request line.
        let target: String
        let fields: HeaderFields
        let body: RequestBody
        /// The numeric address of the client; nil if unknown.
        let remoteAddress: String?

        /// The target before its query.
        var path: Substring { target.prefix { $0 != "?" } }

        /// The most arguments of a query.
        static let mostArguments = 100

        /// The decoded arguments of the query, in order.
        ///
        /// An argument that cannot be read is refused and not skipped, because without it the request would mean
        /// something else.
        ///
        /// - Throws: a refusal if an argument is not name=value, or if there are too many.
        func arguments() throws(InspectorGuard.Refusal) -> [(name: String, value: String)] {
            guard let mark = target.firstIndex(of: "?") else { return [] }
            let texts = target[target.index(after: mark)...].split(separator: "&")
            guard texts.count <= InspectorRequest.mostArguments else {
                throw .invalid(
                    "The query has more than \(InspectorRequest.mostArguments) arguments. Send several requests."
                )
            }
            var arguments: [(name: String, value: String)] = []
            for text in texts {
                let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, let value = parts[1].replacing("+", with: " ").removingPercentEncoding else {
                    throw .invalid(
                        "'\(InspectorRequest.shown(text))' is not understood. Write name=value, and percent-encode the value."
                    )
                }
                arguments.append((String(parts[0]), value))
            }
            return arguments
        }

        /// The values of a query that may only have certain arguments, each at most once.
        ///
        /// - Parameter names: the names that are allowed.
        /// - Throws: a refusal if the query has others, has one twice, or cannot be read.
        func arguments(named names: [String]) throws(InspectorGuard.Refusal) -> [String: String] {
            var values: [String: String] = [:]
            for (name, value) in try arguments() {
                guard names.contains(name), values.updateValue(value, forKey: name) == nil else {
                    let list = names.map { "\($0)=" }.joined(separator: ", ")
                    throw .invalid(
                        "'\(InspectorRequest.shown(name))=' is unknown or given twice. "
                            + (names.isEmpty ? "Remove the query." : "The query may have \(list), each once.")
                    )
                }
            }
            return values
        }

        /// A whole number in a query; nil if it is not there.
        ///
        /// - Throws: a refusal if it is another text.
        static func number<Number: FixedWidthInteger>(
            _ text: String?,
            named name: String
        ) throws(InspectorGuard.Refusal) -> Number? {
            guard let text else { return nil }
            guard let number = Number(text) else {
                throw .invalid("'\(shown(text))' is not understood. \(name)= must be a whole number.")
            }
            return number
        }

        /// The beginning of a text of the client, without control characters.
        static func shown(_ text: some StringProtocol) -> String {
            ProxyFailure(.request, text: String(text.prefix(64))).text
        }

        /// All of its content.
        ///
        /// - Throws: ``ServiceError`` `.bodyTooLarge` beyond the limit, or the error of reading it.
        func content(upTo limit: Int) async throws -> ByteChunk {
            switch body.form {
            case .none, .requestStream: return ByteChunk()
            case .bytes(let bytes): return try await ResponseBody(bytes).collect(upTo: limit)
            case .oneShot(let length, let source):
                return try await ResponseBody(source, length: length).collect(upTo: limit)
            case .factory(let length, let make):
                return try await ResponseBody(try await make(), length: length).collect(upTo: limit)
            case .file:
                throw ServiceError(.unsupported, "The inspector does not accept files. Send the content itself.")
            }
        }
    }

    /// Decides who may use the inspector: a person at this machine, through a page that the inspector itself has
    /// served.
    ///
    /// Excluded are other machines (by the client's address), pages of other sites whose name was made to resolve here
    /// (Host), pages that send requests across origins (Origin, Sec-Fetch-Site), clients behind a proxy on this machine
    /// (Via and similar), and changes to the cache without the word that only our own page knows.
    struct InspectorGuard: Sendable {
        /// Why a request is refused.
        struct Refusal: Error, Sendable, Hashable {
            let status: StatusCode
            /// What a person can do about it.
            let message: String
            var allow: String?

            /// The request cannot be understood, so nothing was done.
            static func invalid(_ message: String) -> Refusal { Refusal(status: 400, message: message) }
        }

        /// The field with ``word`` in requests that change something.
        static let wordField: FieldName = "X-Holdfast-Inspector"

        /// Fields that proxies add to requests (RFC 9110 §7.6.3, RFC 7239): anyone may be behind one.
        private static let marksOfProxies: [FieldName] = [
            "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP",
        ]

        /// Where the inspector listens, as it is written in a URL.
        let host: String
        let port: Int
        /// The word that the page contains and that orders must send; new at each start.
        let word: String
        /// Whether access was already decided by a token, or by the permissions of a socket in the file system. Pages
        /// of other sites are excluded even then.
        let isOpen: Bool

        /// - Parameter word: by default 32 random bytes in hexadecimal digits.
        init(
            host: String = "127.0.0.1",
            port: Int,
            word: String = InspectorGuard.randomWord(),
            isOpen: Bool = false
        ) {
            self.host = host.contains(":") ? "[\(host.lowercased())]" : host.lowercased()
            self.port = port
            self.word = word
            self.isOpen = isOpen
        }

        /// Whether to answer a request at all.
        func check(_ request: InspectorRequest) throws(Refusal) {
            let hosts = request.fields.values(of: .host)
            let host = hosts.first?.lowercased() ?? ""
            if !isOpen { try checkMachine(request, hosts: hosts) }
            guard isOpen || !InspectorGuard.marksOfProxies.contains(where: { request.fields.contains($0) }) else {
                throw Refusal(status: 403, message: "The inspector does not answer requests that come through a proxy.")
            }
            let origins = request.fields.values(of: "Origin")
            let own = ["http://\(host)"] + (isOpen ? ["https://\(host)"] : [])
            guard origins.allSatisfy({ own.contains($0.lowercased()) }) else {
                throw Refusal(status: 403, message: "The inspector only answers its own page.")
            }
            let sites = request.fields.values(of: "Sec-Fetch-Site")
            guard sites.allSatisfy({ ["same-origin", "none"].contains($0.lowercased()) }) else {
                throw Refusal(
                    status: 403,
                    message: "The inspector cannot be opened from a page of another site. Type its address."
                )
            }
        }

        private func checkMachine(_ request: InspectorRequest, hosts: [String]) throws(Refusal) {
            guard request.remoteAddress.flatMap({ NetworkAddress($0) })?.isLoopback == true else {
                throw Refusal(status: 403, message: "The inspector only answers this machine.")
            }
            guard hosts.count == 1, isOwn(hosts[0].lowercased()) else {
                throw Refusal(
                    status: 403,
                    message: "Open the inspector as http://\(self.host):\(port)/."
                )
            }
        }

        /// Whether a request may change something; to be called after ``check(_:)``.
        func checkOrder(_ request: InspectorRequest) throws(Refusal) {
            let type = request.fields.values(of: .contentType)
            let essence = type.first?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
            guard type.count == 1, essence == "application/json" else {
                throw Refusal(status: 415, message: "Send the order as application/json.")
            }
            let words = request.fields.values(of: InspectorGuard.wordField)
            guard words.count == 1, let given = words.first, InspectorGuard.isEqual(given, to: word) else {
                throw Refusal(status: 403, message: "The page is older than the proxy. Reload it.")
            }
        }

        private func isOwn(_ host: String) -> Bool {
            [self.host, "127.0.0.1", "localhost", "[::1]"].contains { name in
                host == "\(name):\(port)" || port == 80 && host == name
            }
        }

        /// Compares in a time that does not reveal where two texts differ.
        static func isEqual(_ left: String, to right: String) -> Bool {
            let (left, right) = (Array(left.utf8), Array(right.utf8))
            guard left.count == right.count else { return false }
            var difference: UInt8 = 0
            for index in left.indices { difference |= left[index] ^ right[index] }
            return difference == 0
        }

        static func randomWord() -> String {
            var generator = SystemRandomNumberGenerator()
            return (0..<4).map { _ in generator.next().hexDigits }.joined()
        }
    }
#endif
