// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import AsyncHTTPClient
    internal import Foundation
    internal import HoldfastCommand
    internal import HoldfastProxy
    internal import HoldfastSemantics
    internal import NIOCore
    internal import NIOHTTP1

    /// Sends a purge to the admin listener of the process that holds a cache's directory.
    struct PurgeAtHolder: Sendable {
        let directory: URL
        /// The process in the lock; nil if unknown.
        let process: Int32?
        /// The token's file; nil: the one that the process uses.
        let tokenFile: String?

        private static let timeout = TimeAmount.seconds(300)

        /// Sends the purge.
        ///
        /// - Parameters:
        ///   - match: The responses to remove; nil: all.
        ///   - refusal: Why the directory cannot be opened.
        /// - Returns: the number of removed responses; nil if the store did not count them.
        /// - Throws: ``CommandFailure``.
        func purge(_ match: EntryMatch?, refusal: String) async throws(CommandFailure) -> Int? {
            guard let note = AdminNote.read(in: directory), note.process == process else {
                throw CommandFailure(
                    refusal + " A proxy with --admin would do the purge itself."
                )
            }
            let token = try token(note)
            do {
                let (status, text) = try await PurgeAtHolder.post(match, to: note, token: token)
                switch status {
                case 200:
                    struct Outcome: Decodable { let purged: Int? }
                    return try JSONDecoder().decode(Outcome.self, from: Data(text.utf8)).purged
                case 401:
                    throw CommandFailure(
                        "process \(note.process) at \(note.address) needs another token; use --admin-token FILE"
                    )
                default:
                    let line = String(text.prefix { !$0.isNewline }.prefix(300))
                    throw CommandFailure(
                        "process \(note.process) at \(note.address) rejected the purge: \(status) \(line)"
                    )
                }
            } catch let failure as CommandFailure {
                throw failure
            } catch is DecodingError {
                throw CommandFailure(
                    refusal + " The process that listens at \(note.address) does not respond like a holdfast proxy."
                )
            } catch {
                let reason = error is HTTPClientError ? "\(error)" : SystemText.of(error)
                throw CommandFailure(refusal + " It cannot be reached for the purge at \(note.address): \(reason)")
            }
        }

        private func token(_ note: AdminNote) throws(CommandFailure) -> String? {
            guard let file = tokenFile ?? note.tokenFile else { return nil }
            guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
                throw CommandFailure(
                    "cannot read the admin token \(file); check its permissions, or use --admin-token FILE"
                )
            }
            return String(text.prefix { !$0.isNewline })
        }

        private static func post(_ match: EntryMatch?, to note: AdminNote, token: String?) async throws -> (
            UInt, String
        ) {
            var base = note.address
            if base.hasPrefix("unix:") {
                let allowed = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-._~"))
                base = "http+unix://" + (base.dropFirst(5).addingPercentEncoding(withAllowedCharacters: allowed) ?? "")
            }
            var request = HTTPClientRequest(url: base + (match == nil ? "/purge?all=1" : "/purge/matching"))
            request.method = .POST
            if base.hasPrefix("http+unix:") { request.headers.add(name: "Host", value: "localhost") }
            request.headers.add(name: AdminNote.field.rawName, value: note.instance)
            if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
            if let match {
                request.headers.add(name: "Content-Type", value: "application/json")
                request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(match)))
            }
            var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
            configuration.timeout.connect = .seconds(5)
            let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
            do {
                let response = try await client.execute(request, timeout: timeout)
                let body = try await response.body.collect(upTo: 65_536)
                try await client.shutdown()
                return (response.status.code, String(buffer: body))
            } catch {
                try? await client.shutdown()
                throw error
            }
        }
    }
#endif
