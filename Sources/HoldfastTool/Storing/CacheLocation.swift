// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Foundation
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics
    internal import HoldfastStorage

    /// Which cache, and by which rules its freshness is judged.
    struct CacheLocation: ParsableArguments {
        enum Mode: String, ExpressibleByArgument, CaseIterable {
            case `private`
            case shared
        }

        @Option(
            name: [.customShort("d"), .long],
            help: ArgumentHelp("The cache's directory, as given to `holdfast proxy --disk`.", valueName: "dir")
        )
        var directory: String

        @Option(help: "Judge freshness as a cache of this kind does: by s-maxage in a shared one.")
        var mode: Mode = .private

        /// The directory in full.
        var url: URL { URL(fileURLWithPath: directory, isDirectory: true).standardizedFileURL }

        var options: CacheOptions { CacheOptions(mode: mode == .shared ? .shared : .private) }

        /// Opens the cache for reading only.
        func read() async throws -> ReadCache {
            do throws(StoreError) {
                let reader = try await DiskStoreReader.open(directory: url.path)
                return ReadCache(cache: HTTPCache(store: reader, options: options), reader: reader)
            } catch {
                throw CommandFailure(error)
            }
        }
    }

    /// A cache that is read beside the process that may have it open.
    struct ReadCache: Sendable {
        let cache: HTTPCache
        let reader: DiskStoreReader

        /// Says what a list could not show.
        func tellSealed(on console: Console) {
            let count = reader.sealedEntriesPassedOver
            guard count > 0 else { return }
            console.error("holdfast: \(count) encrypted entries were passed over; their key is not at hand\n")
        }
    }

    extension CommandFailure {
        /// What a store could not do, with what the system said.
        init(_ error: StoreError) {
            self.init(error.message + (error.cause.map { " (\($0))" } ?? ""))
        }
    }
#endif
