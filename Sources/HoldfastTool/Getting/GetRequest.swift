// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Foundation
    internal import Holdfast
    internal import HoldfastAsyncHTTPClient
    internal import HoldfastCommand
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// The request for one URL of the command line.
    struct GetRequest: Sendable {
        let request: URLRequest
        let body: RequestBody
        /// The URL as shown in messages.
        let name: String

        /// The most bytes that `--data @-` reads from standard input.
        static let largestInput = 256 << 20

        /// - Parameters:
        ///   - text: the URL as it was typed.
        ///   - method: nil: GET, or POST if there is content.
        ///   - headers: lines `Name: value`; `Name:` removes a field that the command would send.
        ///   - body: the content, if any.
        /// - Throws: ``CommandFailure`` for an invalid URL, method or field.
        init(_ text: String, method: String?, headers: [String], body: RequestBody) throws(CommandFailure) {
            let target: TargetURI
            do {
                target = try TargetURI(tolerating: Self.withScheme(text))
            } catch {
                throw .usage("'\(HeadText.printable(text))' is not a valid URL: \(error.message)")
            }
            guard let url = URL(string: target.canonical) else {
                throw .usage("'\(HeadText.printable(text))' is not a valid URL")
            }
            let hasContent = !body.isNone
            let method = method ?? (hasContent ? RequestMethod.post.rawValue : RequestMethod.get.rawValue)
            guard RequestMethod(validating: method) != nil else { throw .usage("'\(method)' is not a valid method") }
            var fields: HeaderFields = ["Accept": "*/*", "User-Agent": ToolVersion.product]
            if hasContent { fields[.contentType] = "application/x-www-form-urlencoded" }
            if let userinfo = target.userinfo {
                let credentials = userinfo.removingPercentEncoding ?? userinfo
                fields[.authorization] = "Basic " + Data(credentials.utf8).base64EncodedString()
            }
            fields = fields.merging(try Self.fields(headers))
            var request = URLRequest(url: url)
            request.httpMethod = method
            // An empty value removes the field.
            for line in fields where !line.value.isEmpty {
                request.addValue(line.value, forHTTPHeaderField: line.name.rawName)
            }
            self.request = request
            self.body = body
            name = target.canonical
        }

        /// The URL with a scheme if it was typed without one: http for this machine, https for all others.
        static func withScheme(_ text: String) -> String {
            let authority = text.prefix { !"/?#".contains($0) }
            if authority.hasSuffix(":"), text[authority.endIndex...].hasPrefix("//") { return text }
            // `localhost:80` is a host and a port, but `mailto:me` is another kind of URL.
            if let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]"),
                !authority[colon...].dropFirst().allSatisfy(\.isNumber)
            {
                return text
            }
            let host = authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
            let isOwn = host == "localhost" || host.hasSuffix(".localhost") || host.hasPrefix("127.") || host == "[::1]"
            return (isOwn ? "http://" : "https://") + text
        }

        private static func fields(_ lines: [String]) throws(CommandFailure) -> HeaderFields {
            var fields = HeaderFields()
            for line in lines {
                guard let colon = line.firstIndex(of: ":"), let name = FieldName(String(line[..<colon])) else {
                    throw .usage("'\(HeadText.printable(line))' is not a header field; write 'Name: value'")
                }
                let value = String(line[colon...].dropFirst())
                if value.unicodeScalars.contains(where: { $0 == "\r" || $0 == "\n" || $0 == "\0" }) {
                    throw .usage("the field \(name) contains a line break")
                }
                fields.append(name, value)
            }
            return fields
        }

        /// The content that `--data` specifies: text as it is, `@file`, or `@-` for standard input.
        static func body(_ data: String?) async throws -> RequestBody {
            guard let data else { return .none }
            guard data.hasPrefix("@") else { return .data(Data(data.utf8)) }
            let path = String(data.dropFirst())
            if path == "-" {
                let bytes = try await BlockingWork.run {
                    var source = try LogSource("-")
                    return try source.rest(
                        limit: largestInput,
                        CommandFailure("standard input is longer than 256 MiB; save it and use --data @file")
                    )
                }
                return .data(bytes)
            }
            let isThere = try await BlockingWork.run { FileManager.default.isReadableFile(atPath: path) }
            guard isThere else { throw CommandFailure("cannot read \(path); check the path and its permissions") }
            return .file(URL(fileURLWithPath: path))
        }
    }

    /// The environment of `holdfast get`, which tests replace.
    struct GetEnvironment: Sendable {
        var console: Console
        var transport: any Transport
        /// Ends the transport.
        var end: @Sendable () async -> Void = {}
        var clock: any HoldfastClock = SystemClock()
        /// The cache directory, unless the command line specifies one.
        var cacheDirectory: URL
        /// The directory for saved files.
        var workingDirectory = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)

        /// The network: AsyncHTTPClient, with HTTP/1.1 and HTTP/2. Must be ended.
        static func network(_ console: Console, cacheDirectory: URL) -> GetEnvironment {
            let transport = AsyncHTTPClientTransport()
            return GetEnvironment(
                console: console,
                transport: transport,
                end: { try? await transport.shutdown() },
                cacheDirectory: cacheDirectory
            )
        }

        /// The folder `holdfast` in the platform's cache folder for the user.
        ///
        /// `$XDG_CACHE_HOME` if it is set and absolute; otherwise `~/Library/Caches` on Apple systems and `~/.cache`
        /// elsewhere.
        static func userCacheDirectory(_ environment: [String: String]) -> URL {
            if let path = environment["XDG_CACHE_HOME"], path.hasPrefix("/") {
                return URL(fileURLWithPath: path).appendingPathComponent("holdfast")
            }
            let home = environment["HOME"].flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0) : nil }
            let own = home ?? FileManager.default.homeDirectoryForCurrentUser
            #if canImport(Darwin)
                return own.appendingPathComponent("Library/Caches/holdfast")
            #else
                return own.appendingPathComponent(".cache/holdfast")
            #endif
        }
    }
#endif
