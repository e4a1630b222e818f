// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import Synchronization

    @testable import HoldfastTool

    /// Keeps what a command writes.
    final class CollectedOutput: Sendable {
        private let state = Mutex((output: Data(), error: ""))
        private let errorIsTerminal: Bool

        init(errorIsTerminal: Bool = false) {
            self.errorIsTerminal = errorIsTerminal
        }

        /// What went to standard output so far, as text.
        var output: String { String(decoding: bytes, as: UTF8.self) }
        /// What went to standard output so far.
        var bytes: Data { state.withLock { $0.output } }
        /// What went to standard error so far.
        var error: String { state.withLock { $0.error } }

        /// The console to hand to a command.
        var console: Console {
            Console(
                write: { data in self.state.withLock { $0.output += data } },
                error: { text in self.state.withLock { $0.error += text } },
                outputIsTerminal: false,
                errorIsTerminal: errorIsTerminal,
                width: 80
            )
        }
    }

    /// A folder of a test's own, gone with the value.
    final class TestFolder: Sendable {
        let url: URL

        init() throws {
            url = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-tool-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }

        deinit {
            try? FileManager.default.removeItem(at: url)
        }

        /// The path of a file in it.
        func path(_ name: String) -> String { url.appendingPathComponent(name).path }

        /// Writes a file and gives its path.
        func file(_ name: String, _ text: String) throws -> String {
            try Data(text.utf8).write(to: url.appendingPathComponent(name))
            return path(name)
        }

        /// The names in it, sorted.
        var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []).sorted() }
    }
#endif
