// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import Foundation
    internal import Holdfast
    package import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore

    /// The listener for the operator: metrics, health, purging and the inspector.
    ///
    /// Without a token it only answers this machine, like the inspector. With one it may listen anywhere, and answers
    /// anyone who has the token: `Authorization: Bearer TOKEN`, or HTTP Basic with any name and the token as the
    /// password, for browsers. Health needs neither.
    public struct AdminConfiguration: Sendable, Hashable {
        /// The address to listen on; `127.0.0.1` by default, `unix:/path` for a socket that only its owner may use.
        public var host = "127.0.0.1"
        /// The port; 0 for a free one.
        public var port = 0
        /// The token that requests need; nil, the default: none, and no other machine is answered.
        public var token: String?
        /// The identifier of this start, which requests may require (``AdminNote``).
        package var instance = AdminNote.makeInstance()

        /// Listens on this machine, without a token.
        public init() {}

        func validate() throws(ProxyConfigurationError) {
            if let token, token.utf8.count < 16 || !token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) {
                throw ProxyConfigurationError(
                    "the admin token must have at least 16 characters, such as letters and digits"
                )
            }
            guard token != nil || ProxyConfiguration.isLoopback(host) else {
                throw ProxyConfigurationError(
                    "an admin listener on \(host) needs a token; set one, or listen on 127.0.0.1"
                )
            }
        }
    }

    /// The listeners for an operator: that of a proxy, and that of an inspector alone.
    enum AdminServer {
        /// Starts listening.
        ///
        /// - Parameter responder: makes what answers, once the port is known; nil on a socket in the file system.
        static func start(
            at address: HTTPServer.Address,
            responder: @Sendable (_ port: Int?) -> DeferredResponder.Answer
        ) async throws -> HTTPServer {
            var settings = ServerConfiguration()
            settings.maximumConnections = 64
            // Connections that send nothing must not lock the operator out.
            settings.closesWaitingConnections = true
            settings.headTimeout = .seconds(5)
            settings.bodyStall = .seconds(5)
            settings.writeStall = .seconds(5)
            let deferred = DeferredResponder()
            let server = try await HTTPServer.start(
                at: address,
                configuration: settings,
                socketPermissions: 0o600,
                handler: deferred
            )
            deferred.open(responder(server.port))
            return server
        }
    }

    /// Answers the requests of an admin listener, whatever server they come from.
    struct AdminDesk: Sendable {
        /// The current cache; nil if there is none.
        let cache: @Sendable () -> HTTPCache?
        let metrics: ProxyMetrics
        /// The token of the operator; nil: none is needed.
        let token: String?
        /// The identifier of this start; nil if it is not published.
        var instance: String?
        /// Decides who may ask without a token, and what pages of other sites may not do.
        let guarding: InspectorGuard
        /// The inspector; nil if there is no cache to inspect.
        let inspector: InspectorResponder?
        /// The origin of paths without a host; nil for a forward proxy.
        let origin: ProxyOrigin?
        /// Why requests should go elsewhere at the moment; nil if the proxy is ready.
        let unready: @Sendable () -> String?
        /// Figures about connections; nil once the proxy is gone.
        let connections: @Sendable () -> ProxyMetrics.Connections?

        /// The response to a request; made off the event loops, because a list or a purge may take a while.
        @concurrent
        func answer(_ request: InspectorRequest) async -> Response {
            do {
                switch (request.method, request.path) {
                case (.get, "/healthz"), (.head, "/healthz"): return text(200, "ok")
                case (.get, "/readyz"), (.head, "/readyz"):
                    return unready().map { text(503, $0) } ?? text(200, "ready")
                default: break
                }
                // A note left by a dead process may point to another process that now listens there.
                guard request.fields.values(of: AdminNote.field).allSatisfy({ $0 == instance }) else {
                    return text(409, "The request is for another process.")
                }
                guard isAuthorized(request) else {
                    var response = text(401, "Send the admin token as Authorization: Bearer, or as a password.")
                    response.fields.append("WWW-Authenticate", "Basic realm=\"holdfast\"")
                    return response
                }
                try guarding.check(request)
                switch (request.method, request.path) {
                case (.get, "/metrics"), (.head, "/metrics"):
                    var response = text(200, metrics.text(cache: cache(), connections: connections()))
                    response.fields[.contentType] = "text/plain; version=0.0.4; charset=utf-8"
                    return response
                case ("PURGE", _), (.post, "/purge"):
                    return try await purge(try PurgeOrder(request, origin: origin))
                case (.post, "/purge/matching"):
                    return try await purge(try await PurgeOrder(matching: request))
                default:
                    guard let inspector else { return text(404, "There is no cache to inspect; see /metrics.") }
                    return await inspector.answer(request)
                }
            } catch let refusal as InspectorGuard.Refusal {
                return text(refusal.status, refusal.message)
            } catch {
                return text(500, "The purge failed: \(ProxyFailure(.store, text: "\(error)").text)")
            }
        }

        private func isAuthorized(_ request: InspectorRequest) -> Bool {
            guard let token else { return true }
            let given = request.fields.values(of: .authorization)
            guard given.count == 1, let space = given[0].firstIndex(of: " ") else { return false }
            let credentials = given[0][space...].drop { $0 == " " }
            switch given[0][..<space].lowercased() {
            case "bearer": return InspectorGuard.isEqual(String(credentials), to: token)
            case "basic":
                guard let data = Data(base64Encoded: String(credentials)) else { return false }
                let pair = String(decoding: data, as: UTF8.self).split(separator: ":", maxSplits: 1)
                return InspectorGuard.isEqual(pair.last.map { String($0) } ?? "", to: token)
            default: return false
            }
        }

        /// Removes or marks the selected responses, and reports how many.
        private func purge(_ order: PurgeOrder) async throws -> Response {
            guard let cache = cache() else { throw InspectorGuard.Refusal(status: 404, message: "There is no cache.") }
            var count: Int? = 0
            var failure: (any Error)?
            // All of them, whatever fails: a store makes up later only for what it was asked.
            for selection in order.selections {
                do {
                    let removed = try await order.isSoft ? cache.markStale(selection) : cache.remove(selection)
                    count = removed.flatMap { removed in count.map { $0 + removed } }
                } catch {
                    failure = failure ?? error
                }
            }
            if let failure { throw failure }
            let number = count.map { "\($0)" } ?? "null"
            var response = text(200, "{\"purged\":\(number),\"soft\":\(order.isSoft)}")
            response.fields[.contentType] = "application/json"
            return response
        }

        private func text(_ status: StatusCode, _ text: String) -> Response {
            Response(
                status: status,
                fields: [
                    .contentType: "text/plain; charset=utf-8", .cacheControl: "no-store",
                    "X-Content-Type-Options": "nosniff",
                ],
                body: ResponseBody(ByteChunk(copying: (text + (text.hasSuffix("\n") ? "" : "\n")).utf8)),
                source: .synthesized
            )
        }
    }

    /// A file in a cache's directory that says where the process with the open directory accepts purges. Only the owner
    /// may enter the directory.
    ///
    /// It contains no secret. A file left by a crashed process is harmless: its process number must match the lock, and
    /// the listener accepts an order only with the identifier of its own start.
    package struct AdminNote: Codable, Sendable, Hashable {
        /// The name of the file.
        package static let fileName = "admin.json"
        /// The header field with the identifier of the process that a request is meant for.
        package static let field: FieldName = "Holdfast-Instance"

        /// The process number.
        package let process: Int32
        /// `http://127.0.0.1:9090`, or `unix:/path`.
        package let address: String
        /// The identifier of this start.
        package let instance: String
        /// The file whose first line is the token; nil if no token is required.
        package let tokenFile: String?

        package init(process: Int32, address: String, instance: String, tokenFile: String?) {
            self.process = process
            self.address = address
            self.instance = instance
            self.tokenFile = tokenFile
        }

        /// Creates a unique identifier for a start.
        package static func makeInstance() -> String { String(InspectorGuard.randomWord().prefix(32)) }

        /// The note in a directory; nil if there is no readable one.
        package static func read(in directory: URL) -> AdminNote? {
            guard let handle = try? FileHandle(forReadingFrom: directory.appending(path: fileName)) else { return nil }
            defer { try? handle.close() }
            guard let bytes = try? handle.read(upToCount: 65_536) else { return nil }
            return try? JSONDecoder().decode(AdminNote.self, from: bytes)
        }

        /// Writes the note, readable only by its owner; only the holder of the directory's lock may call this.
        package func write(in directory: URL) throws {
            let file = directory.appending(path: AdminNote.fileName)
            let new = directory.appending(path: AdminNote.fileName + ".tmp")
            try? FileManager.default.removeItem(at: new)
            let bytes = try JSONEncoder().encode(self)
            guard
                FileManager.default.createFile(
                    atPath: new.path,
                    contents: bytes,
                    attributes: [.posixPermissions: 0o600]
                )
            else { throw CocoaError(.fileWriteUnknown) }
            guard rename(new.path, file.path) == 0 else {
                throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
            }
        }

        /// Removes the note; only the holder of the directory's lock may call this.
        package static func remove(in directory: URL) {
            try? FileManager.default.removeItem(at: directory.appending(path: fileName))
        }
    }
#endif
