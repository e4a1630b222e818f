// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    public import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore
    private import Synchronization

    /// Serves a page on this machine that shows what a cache does: hit rate and traffic, entries, calls, origins, and buttons that
    /// purge.
    ///
    ///     let model = InspectorModel(cache: cache)
    ///     configuration.observers.append(model)
    ///     // … make the pipeline with `cache`, `configuration` and a retrier factory …
    ///     let inspector = Inspector(model: model, governor: retrierFactory.governor)
    ///     let port = try await inspector.start(port: 9090)
    ///     // … until the proxy ends:
    ///     await inspector.stop()
    ///
    /// It listens on 127.0.0.1 alone, answers no request of another machine, of another site's page, under another name or by way
    /// of a proxy that says so, and shows no credential. Nothing of it counts as a request to the cache.
    ///
    /// Whoever forwards requests to any host must not forward those to its port: they would come from this machine.
    public final class Inspector: Sendable {
        /// How many connections it serves at a time.
        static let maximumConnections = 64

        private let model: InspectorModel
        private let governor: RetryGovernor?
        private let server = Mutex<HTTPServer?>(nil)

        /// An inspector that listens nowhere yet.
        ///
        /// - Parameters:
        ///   - model: what has been remembered; list it among the observers of the pipeline.
        ///   - governor: whose budgets are shown, that of the pipeline's retrier factory; nil, the default: none are.
        public init(model: InspectorModel, governor: RetryGovernor? = nil) {
            self.model = model
            self.governor = governor
        }

        /// The port it listens on; nil before the start and after the end.
        public var port: Int? { server.withLock { $0 }?.port }

        /// Begins to listen on 127.0.0.1; a server from an earlier start ends first.
        ///
        /// - Parameter port: 0 takes any that is free.
        /// - Returns: the port.
        /// - Throws: what the system says where the port is taken.
        @discardableResult
        public func start(port: Int) async throws -> Int {
            await stop()
            var configuration = ServerConfiguration()
            configuration.maximumConnections = Inspector.maximumConnections
            let deferred = DeferredResponder()
            let server = try await HTTPServer.start(
                at: .host("127.0.0.1", port: port),
                configuration: configuration,
                handler: deferred
            )
            let own = server.port ?? port
            let responder = InspectorResponder(model: model, governor: governor, guarding: InspectorGuard(port: own))
            deferred.open { await responder.answer($0) }
            self.server.withLock { $0 = server }
            return own
        }

        /// Ends the server and its connections.
        public func stop() async {
            let ended = server.withLock { server in
                defer { server = nil }
                return server
            }
            await ended?.close()
        }
    }

    /// Hands the requests of a server on once somebody answers them: which port is free is known only when the server listens.
    final class DeferredResponder: ClientHandler {
        typealias Answer = @Sendable (InspectorRequest) async -> Response
        private let respond = Mutex<Answer?>(nil)

        func open(_ respond: @escaping Answer) {
            self.respond.withLock { $0 = respond }
        }

        func answer(_ request: ClientRequest) async -> Response {
            guard let respond = respond.withLock({ $0 }) else { return Response(status: 503, source: .synthesized) }
            return await respond(
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

    /// A request to the inspector, whatever server it came in by.
    struct InspectorRequest: Sendable {
        let method: RequestMethod
        /// As it stood in the request line.
        let target: String
        let fields: HeaderFields
        let body: RequestBody
        /// The numeric address it came from; nil: not known.
        let remoteAddress: String?

        /// The target up to its query.
        var path: Substring { target.prefix { $0 != "?" } }

        /// The arguments of the query, decoded; the first sixteen.
        var arguments: [(name: String, value: String)] {
            guard let mark = target.firstIndex(of: "?") else { return [] }
            return target[target.index(after: mark)...].split(separator: "&", maxSplits: 15).compactMap { argument in
                let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, let value = parts[1].replacing("+", with: " ").removingPercentEncoding else {
                    return nil
                }
                return (String(parts[0]), value)
            }
        }

        /// The value of an argument of the query; the first one of its name, nil where there is none.
        func argument(_ name: String) -> String? { arguments.first { $0.name == name }?.value }

        /// All of its content.
        ///
        /// - Throws: ``ServiceError`` `.bodyTooLarge` beyond the limit, and what reading it failed with.
        func content(upTo limit: Int) async throws -> ByteChunk {
            switch body.form {
            case .none, .requestStream: return ByteChunk()
            case .bytes(let bytes): return try await ResponseBody(bytes).collect(upTo: limit)
            case .oneShot(let length, let source):
                return try await ResponseBody(source, length: length).collect(upTo: limit)
            case .factory(let length, let make):
                return try await ResponseBody(try await make(), length: length).collect(upTo: limit)
            case .file:
                throw ServiceError(.unsupported, "The inspector takes no files; send the content itself.")
            }
        }
    }

    /// Decides who may ask the inspector anything: a person at this machine, by a page that the inspector itself has served.
    ///
    /// Nobody on the network (the address it comes from), no page of another site whose name was made to lead here (Host), none that
    /// sends requests across origins (Origin, Sec-Fetch-Site), nobody behind a proxy at this machine (Via and its like), and nothing that changes the cache without the word that only our own
    /// page knows.
    struct InspectorGuard: Sendable {
        /// Why a request is refused.
        struct Refusal: Error, Sendable, Hashable {
            let status: StatusCode
            /// What a person may do about it.
            let message: String
            var allow: String?
        }

        /// Names the field that bears ``word`` with a request that changes something.
        static let wordField: FieldName = "X-Holdfast-Inspector"

        /// What proxies write into requests (RFC 9110 §7.6.3, RFC 7239): behind one anybody may stand.
        private static let marksOfProxies: [FieldName] = [
            "Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP",
        ]

        /// The port that the inspector listens at.
        let port: Int
        /// What the page carries and an order must bear; new with each start.
        let word: String
        /// Whether it was settled elsewhere that whoever asks may: by a token, or by the rights of a socket in the file system. Pages of
        /// other sites may not even so.
        let isOpen: Bool

        /// - Parameter word: by default 32 random bytes in hexadecimal digits.
        init(port: Int, word: String = InspectorGuard.randomWord(), isOpen: Bool = false) {
            self.port = port
            self.word = word
            self.isOpen = isOpen
        }

        /// Whether a request is to be answered at all.
        func check(_ request: InspectorRequest) throws(Refusal) {
            let hosts = request.fields.values(of: .host)
            let host = hosts.first?.lowercased() ?? ""
            if !isOpen { try checkMachine(request, hosts: hosts) }
            guard isOpen || !InspectorGuard.marksOfProxies.contains(where: { request.fields.contains($0) }) else {
                throw Refusal(status: 403, message: "The inspector answers no request that comes by a proxy.")
            }
            let origins = request.fields.values(of: "Origin")
            let own = ["http://\(host)"] + (isOpen ? ["https://\(host)"] : [])
            guard origins.allSatisfy({ own.contains($0.lowercased()) }) else {
                throw Refusal(status: 403, message: "The inspector answers no page but its own.")
            }
            let sites = request.fields.values(of: "Sec-Fetch-Site")
            guard sites.allSatisfy({ ["same-origin", "none"].contains($0.lowercased()) }) else {
                throw Refusal(
                    status: 403,
                    message: "The inspector cannot be opened from a page of another site; type its address."
                )
            }
        }

        private func checkMachine(_ request: InspectorRequest, hosts: [String]) throws(Refusal) {
            guard let address = request.remoteAddress, InspectorGuard.isLoopback(address) else {
                throw Refusal(status: 403, message: "The inspector answers this machine alone.")
            }
            guard hosts.count == 1, isOwn(hosts[0].lowercased()) else {
                throw Refusal(
                    status: 403,
                    message: "Open the inspector as http://127.0.0.1:\(port)/ or http://localhost:\(port)/."
                )
            }
        }

        /// Whether a request may change something; to be asked after ``check(_:)``.
        func checkOrder(_ request: InspectorRequest) throws(Refusal) {
            let type = request.fields.values(of: .contentType)
            let essence = type.first?.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
            guard type.count == 1, essence == "application/json" else {
                throw Refusal(status: 415, message: "Send the order as application/json.")
            }
            let words = request.fields.values(of: InspectorGuard.wordField)
            guard words.count == 1, let given = words.first, InspectorGuard.isEqual(given, to: word) else {
                throw Refusal(status: 403, message: "The page is older than the proxy; load it again.")
            }
        }

        private func isOwn(_ host: String) -> Bool {
            ["127.0.0.1", "localhost", "[::1]"].contains { name in
                host == "\(name):\(port)" || port == 80 && host == name
            }
        }

        /// Compares in a time that tells nothing of where two texts differ.
        static func isEqual(_ left: String, to right: String) -> Bool {
            let (left, right) = (Array(left.utf8), Array(right.utf8))
            guard left.count == right.count else { return false }
            var difference: UInt8 = 0
            for index in left.indices { difference |= left[index] ^ right[index] }
            return difference == 0
        }

        /// Whether a numeric address is one of this machine's own loopback (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
        static func isLoopback(_ address: String) -> Bool {
            var address = address.lowercased()
            if address == "::1" || address == "0:0:0:0:0:0:0:1" { return true }
            if address.hasPrefix("::ffff:") { address.removeFirst(7) }
            let octets = address.split(separator: ".", omittingEmptySubsequences: false)
            return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0) != nil }
        }

        static func randomWord() -> String {
            var generator = SystemRandomNumberGenerator()
            return (0..<4).map { _ in
                let digits = String(generator.next(), radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }
            .joined()
        }
    }
#endif
