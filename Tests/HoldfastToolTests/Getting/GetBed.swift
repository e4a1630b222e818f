// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import ArgumentParser
    import Foundation
    import Holdfast
    import HoldfastCommand
    import HoldfastTestKit
    import HoldfastTesting

    @testable import HoldfastTool

    /// A server, a folder with a cache in it, and what the command writes.
    final class GetBed: Sendable {
        let server: LoopbackServer
        let folder: TestFolder
        /// Where files are saved.
        let downloads: TestFolder

        init(_ handler: @escaping @Sendable (LoopbackRequest) -> LoopbackReply) throws {
            server = try LoopbackServer.start(handler: handler)
            folder = try TestFolder()
            downloads = try TestFolder()
        }

        /// What a run ended with and wrote.
        struct Outcome {
            let status: Int32
            let output: String
            let error: String
        }

        /// Runs the command; a word that begins with a slash is a target on the server, but after an option of this bed's.
        func run(_ words: [String], clock: any HoldfastClock = SystemClock()) async throws -> Outcome {
            let collected = RecordedConsole()
            let all = words.map { $0.hasPrefix("/") ? server.url($0).absoluteString : $0 }
            guard let command = try GetCommand.parseAsRoot(all) as? GetCommand else { throw CommandFailure("no get") }
            var environment = GetEnvironment.network(
                collected.console,
                cacheDirectory: folder.url.appendingPathComponent("cache")
            )
            environment.clock = clock
            environment.workingDirectory = downloads.url
            let result = await Task { [environment] in
                try await GetRun(command: command, environment: environment).run()
            }
            .cancellable()
            await environment.end()
            return Outcome(status: try result.get(), output: collected.output, error: collected.error)
        }

        /// The text of a file that was saved; nil where there is none.
        func saved(_ name: String) -> String? {
            (try? Data(contentsOf: downloads.url.appendingPathComponent(name))).map {
                String(decoding: $0, as: UTF8.self)
            }
        }
    }

    extension Task where Failure == any Error {
        /// The result, and cancelled with anyone who waits for it.
        fileprivate func cancellable() async -> Result<Success, any Error> {
            await withTaskCancellationHandler {
                await result
            } onCancel: {
                cancel()
            }
        }
    }
#endif
