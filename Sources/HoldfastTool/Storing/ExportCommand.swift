// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// `holdfast cache export`.
    struct ExportCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Write stored responses as an HTTP Archive (HAR 1.2), to look at in a browser's developer tools.",
            discussion: """
                Bodies are stored as text, or as Base64 if they are not text. The archive has everything from the cache, also responses to \
                requests with credentials, so only the owner may read the file.

                Examples:
                  holdfast cache export -d cache -o cache.har
                  holdfast cache export -d cache --host api.example --no-bodies | jq '.log.entries | length'
                """
        )

        @OptionGroup var location: CacheLocation
        @OptionGroup(title: "Which responses (all given options must match)") var filter: EntryFilter

        @Option(
            name: [.customShort("o"), .long],
            help: ArgumentHelp("Write to this file. (default: standard output)", valueName: "file")
        )
        var output: String?

        @Flag(help: "Replace an existing file.")
        var force = false

        @Flag(help: "Leave all bodies out.")
        var noBodies = false

        @Option(help: ArgumentHelp("Leave out bodies that are longer than this.", valueName: "size"))
        var bodyLimit = ByteCount(16_000_000)

        func validate() throws {
            if bodyLimit.bytes > 1 << 30 { throw ValidationError("--body-limit must be at most 1GiB.") }
        }

        func run() async throws {
            do {
                try await Interruption.cancelling { [self] in try await run(on: .standard) }.get()
            } catch is CancellationError {
                throw CommandFailure.interrupted
            }
        }

        func run(on console: Console, now: Timestamp = SystemClock().timestamp) async throws {
            let output = output == "-" ? nil : output
            if let output, !force, FileManager.default.fileExists(atPath: output), !OutputFile.isDevice(output) {
                throw CommandFailure("\(output) already exists; use --force to replace it")
            }
            let opened = try await location.read()
            let entries = opened.cache.entries(.matching(try filter.predicate()), pageSize: 32, now: now)
            var file: OutputFile?
            if let output { file = try await OutputFile.open(URL(fileURLWithPath: output), isPrivate: true) }
            let count: Int
            do {
                var archive = try HTTPArchive { [file] data in
                    if let file { try file.write(data) } else { console.write(data) }
                }
                count = try await export(entries, of: opened.cache, to: &archive, console: console, now: now)
                try archive.end()
                try await file?.finish()
            } catch {
                file?.discard()
                throw (error as? StoreError).map { CommandFailure($0) } ?? error
            }
            opened.tellSealed(on: console)
            if let output { console.error("\(count) responses written to \(output)\n") }
            await opened.cache.close()
        }

        private func export(
            _ entries: CacheEntries,
            of cache: HTTPCache,
            to archive: inout HTTPArchive,
            console: Console,
            now: Timestamp
        ) async throws -> Int {
            let progress = ProgressLine(on: console)
            let total = max(1, cache.store.statistics.entryCount)
            var count = 0
            defer { progress.clear() }
            for try await info in entries {
                try Task.checkCancellation()
                do {
                    guard let entry = try await cache.export(info, now: now) else { continue }
                    let content = try await EntryContent(entry, withBody: !noBodies, upTo: bodyLimit.bytes)
                    try archive.add(content)
                } catch let error as StoreError where error.code == .corrupt || error.code == .sealed {
                    console.error("holdfast: \(info.target) was left out: \(error.message)\n")
                    continue
                }
                count += 1
                if output != nil { progress.draw(Double(count) / Double(total), text: "\(count) responses") }
            }
            return count
        }
    }

    /// An HTTP Archive, version 1.2, written entry by entry.
    ///
    /// For the request, the archive has what the cache knows: method, URL and the fields that Vary nominates, without
    /// credentials.
    struct HTTPArchive {
        private let write: (Data) throws -> Void
        private var isEmpty = true

        /// Begins an archive, which is written to `write` at once.
        init(_ write: @escaping (Data) throws -> Void) throws {
            self.write = write
            let creator = #"{"name":"holdfast","version":"\#(ToolVersion.text)"}"#
            try write(Data(#"{"log":{"version":"1.2","creator":\#(creator),"entries":["#.utf8))
        }

        mutating func add(_ content: EntryContent) throws {
            try write(Data(((isEmpty ? "\n" : ",\n") + Self.json(content).text).utf8))
            isEmpty = false
        }

        func end() throws {
            try write(Data("\n]}}\n".utf8))
        }

        private static func json(_ content: EntryContent) -> JSONText {
            let info = content.entry.info
            return .object([
                ("startedDateTime", .string(ReadableText.instant(info.storedAt))),
                ("time", .int(0)),
                ("request", request(info)),
                ("response", response(content)),
                ("cache", .object([])),
                ("timings", .object([("send", .int(0)), ("wait", .int(0)), ("receive", .int(0))])),
                ("_holdfast", .object(info.json.filter { !["url", "method", "status"].contains($0.0) })),
            ])
        }

        private static func request(_ info: CacheEntryInfo) -> JSONText {
            let fields = info.nominated.compactMap { field in
                field.value.text.map { JSONText.object([("name", .string(field.name)), ("value", .string($0))]) }
            }
            return .object([
                ("method", .string(info.method.rawValue)),
                ("url", .string(info.target.canonical)),
                ("httpVersion", .string("HTTP/1.1")),
                ("cookies", .array([])),
                ("headers", .array(fields)),
                ("queryString", .array(query(info.target))),
                ("headersSize", .int(-1)),
                ("bodySize", .int(-1)),
            ])
        }

        private static func query(_ target: TargetURI) -> [JSONText] {
            (target.query ?? "").split(separator: "&").map { pair in
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                func plain(_ text: Substring?) -> JSONText {
                    let text = String(text ?? "")
                    return .string(text.removingPercentEncoding ?? text)
                }
                return .object([("name", plain(parts.first)), ("value", plain(parts.dropFirst().first))])
            }
        }

        private static func response(_ content: EntryContent) -> JSONText {
            let (head, length) = (content.entry.head, content.entry.body.length ?? 0)
            var body: [(String, JSONText)] = [
                ("size", .int(length)),
                ("mimeType", .string(head.fields[.contentType] ?? "x-unknown")),
            ]
            switch content.body {
            case .text(let text): body.append(("text", .string(text)))
            case .base64(let text): body += [("text", .string(text)), ("encoding", .string("base64"))]
            case .leftOut(let why): body.append(("comment", .string(why)))
            }
            return .object([
                ("status", .int(head.status.rawValue)),
                ("statusText", .string("")),
                ("httpVersion", .string("HTTP/1.1")),
                ("cookies", .array([])),
                ("headers", content.fields),
                ("content", .object(body)),
                ("redirectURL", .string(head.fields[.location] ?? "")),
                ("headersSize", .int(content.entry.headBytes.count)),
                ("bodySize", .int(length)),
            ])
        }
    }
#endif
