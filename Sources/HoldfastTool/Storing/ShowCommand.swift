// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// `holdfast cache show URL`.
    struct ShowCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show what is stored for a URL: each variant with its head, and why it is fresh or stale.",
            discussion: """
                The head is the one that the cache would send now, with Age.

                Examples:
                  holdfast cache show -d cache https://api.example/v1/news
                  holdfast cache show -d cache https://api.example/v1/news --variant 2 --body | tail -n +12
                """
        )

        /// A longer body is left out of JSON, which holds it in memory.
        static let longestBody = 16 << 20

        @OptionGroup var location: CacheLocation

        @Argument(help: "An absolute http or https URL.")
        var url: String

        @Option(help: "Only the variant with this number, from 1.")
        var variant: Int?

        @Flag(help: "Write the body after each head, byte for byte.")
        var body = false

        @Flag(help: "Print a JSON array, one object per line; bodies over 16 MiB are left out.")
        var json = false

        func validate() throws {
            _ = try EntryFilter.target(url)
        }

        func run() async throws {
            try await run(on: .standard)
        }

        func run(on console: Console, now: Timestamp = SystemClock().timestamp) async throws {
            let target = try EntryFilter.target(url)
            guard let address = URL(string: target.canonical) else { throw CommandFailure.usage("Not a URL: \(url)") }
            let opened = try await location.read()
            var array = json ? JSONArrayWriter(on: console) : nil
            var (number, shown, damaged) = (0, 0, 0)
            do {
                for try await info in opened.cache.entries(.url(address), now: now) {
                    number += 1
                    guard variant == nil || variant == number else { continue }
                    let found: ExportedEntry?
                    do throws(StoreError) {
                        found = try await opened.cache.export(info, now: now)
                    } catch {
                        guard error.code == .corrupt || error.code == .sealed else { throw error }
                        console.error("holdfast: variant \(number) was left out: \(error.message)\n")
                        damaged += 1
                        continue
                    }
                    guard let entry = found else { continue }
                    shown += 1
                    if array == nil {
                        do {
                            try await show(entry, number: number, on: console)
                        } catch let error as ServiceError {
                            console.error(
                                "\nholdfast: the body of variant \(number) is damaged: \(error.cause.map { "\($0)" } ?? error.message)\n"
                            )
                        }
                    } else {
                        array?.add(.object(try await EntryContent(entry, withBody: body, upTo: Self.longestBody).json))
                    }
                }
            } catch let error as StoreError {
                throw CommandFailure(error)
            }
            array?.end()
            opened.tellSealed(on: console)
            await opened.cache.close()
            guard shown > 0 else {
                if damaged > 0 { throw CommandFailure("no variant that was asked for can be read; purge them") }
                let which = variant.map { "no variant \($0) of \(number)" } ?? "nothing"
                throw CommandFailure("\(which) is stored for \(target)")
            }
        }

        private func show(_ entry: ExportedEntry, number: Int, on console: Console) async throws {
            let info = entry.info
            var lines = ["\(info.method) \(info.target)  (variant \(number))"]
            let size = ByteCount(info.bodyLength)
            lines.append("  stored \(ReadableText.instant(info.storedAt)), \(size), \(FreshnessText(entry).text)")
            if !info.nominated.isEmpty {
                let fields = info.nominated.map(\.description).joined(separator: ", ")
                lines.append("  answers requests with \(fields) (Vary, RFC 9111 §4.1)")
            }
            if !info.tags.isEmpty { lines.append("  tags: " + info.tags.sorted().joined(separator: ", ")) }
            if info.isPersonal { lines.append("  belongs to one principal, and is not used for anyone else") }
            if info.isPinned { lines.append("  pinned: it is not evicted") }
            if info.storedRanges != nil { lines.append("  only parts of the content are stored (RFC 9111 §3.3)") }
            lines += ["", "  HTTP/1.1 \(entry.head.status)"]
            lines += entry.head.fields.map { "  \($0.name.rawName): \($0.value)" }
            console.output(lines.map(ReadableText.harmless).joined(separator: "\n") + "\n\n")
            guard body else { return }
            for try await chunk in entry.body { console.write(chunk.withUnsafeBytes { Data($0) }) }
            console.output("\n")
        }
    }
#endif
