// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastStorage

    /// `holdfast cache verify`.
    struct VerifyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "verify",
            abstract: "Read everything that is stored and verify its checksums; nothing is changed.",
            discussion: """
                Damaged entries are removed by the process that uses the cache when it finds them; a damaged response is never \
                used.

                Example:
                  holdfast cache verify -d cache || echo damaged

                Exit status: 0 no damage; 1 the cache cannot be read; 2 damage was found.
                """
        )

        @OptionGroup var location: CacheLocation

        @Flag(help: "Print one JSON object.")
        var json = false

        func run() async throws {
            try await run(on: .standard)
        }

        func run(on console: Console) async throws {
            let opened = try await location.read()
            let line = ProgressLine(on: console)
            let report: VerificationReport
            do throws(StoreError) {
                report = try await opened.cache.verify { step in
                    line.draw(step.fraction, text: "\(step.entries) entries, \(ByteCount(step.bytesRead))")
                }
            } catch {
                line.clear()
                throw CommandFailure(error)
            }
            line.clear()
            await opened.cache.close()
            console.output(json ? Self.json(report).text + "\n" : Self.text(report))
            guard report.isClean else {
                throw CommandFailure("\(max(report.entriesDamaged, report.damage.count)) found damaged", exitStatus: 2)
            }
        }

        private static func text(_ report: VerificationReport) -> String {
            var text = ""
            for finding in report.damage {
                text +=
                    ReadableText.harmless("\(finding.target?.canonical ?? "(unknown URL)"): \(finding.message)") + "\n"
            }
            text += "\(report.entriesChecked) entries checked, \(ByteCount(report.bodyBytesChecked)) of bodies; "
            text += "\(report.entriesDamaged) damaged"
            if report.entriesSealed > 0 {
                text += "; \(report.entriesSealed) encrypted, of which only the checksums were verified"
            }
            return text + "\n"
        }

        private static func json(_ report: VerificationReport) -> JSONText {
            .object([
                ("entriesChecked", .int(report.entriesChecked)),
                ("bodyBytesChecked", .int(report.bodyBytesChecked)),
                ("entriesDamaged", .int(report.entriesDamaged)),
                ("entriesSealed", .int(report.entriesSealed)),
                (
                    "damage",
                    .array(
                        report.damage.map {
                            .object([
                                ("url", $0.target.map { .string($0.canonical) } ?? .null),
                                ("message", .string($0.message)),
                            ])
                        }
                    )
                ),
            ])
        }
    }
#endif
