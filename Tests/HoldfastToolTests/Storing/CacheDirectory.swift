// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    import Foundation
    import Holdfast
    import HoldfastCommand
    import HoldfastSemantics
    import HoldfastStorage
    import HoldfastTesting
    import Testing

    @testable import HoldfastTool

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// A cache in a directory of its own, filled through a pipeline with a clock that stands still.
    final class CacheDirectory: Sendable {
        let path: String
        let clock = ManualClock()
        private let base: String

        init() throws {
            base = FileManager.default.temporaryDirectory.path + "/holdfast-" + UUID().uuidString
            path = base + "/cache"
            try FileManager.default.createDirectory(
                atPath: base,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        }

        deinit {
            try? FileManager.default.removeItem(atPath: base)
        }

        /// A path beside the cache.
        func path(beside name: String) -> String { base + "/" + name }

        func open(seal: (any StoreSeal)? = nil) async throws -> DiskStore {
            try await DiskStore.open(
                directory: path,
                capacity: 8 << 20,
                seal: seal,
                now: StoreInstant(milliseconds: clock.timestamp.millisecondsSinceEpoch)
            )
        }

        /// An exchange to fill the cache with.
        struct Exchange {
            var url: String
            var fields: HeaderFields
            var body: String
            var tags: Set<String> = []
            var accept: String?
            var authorization: String?
        }

        /// Stores responses as a client would.
        func fill(_ store: any CacheStore, _ exchanges: [Exchange]) async throws {
            for exchange in exchanges {
                var configuration = PipelineConfiguration()
                configuration.clock = clock
                let pipeline = Pipeline(
                    transport: ScriptedTransport([.respond(200, exchange.fields, body: exchange.body)]),
                    cache: HTTPCache(store: store),
                    retrierFactory: NilRetrier.Factory(),
                    configuration: configuration
                )
                var request = URLRequest(url: try #require(URL(string: exchange.url)))
                if let accept = exchange.accept { request.setValue(accept, forHTTPHeaderField: "Accept") }
                if let authorization = exchange.authorization {
                    request.setValue(authorization, forHTTPHeaderField: "Authorization")
                }
                var options = CallOptions()
                options.tags = exchange.tags
                let response = try await pipeline.send(request, options: options)
                _ = try await response.body.collect()
            }
        }

        /// Four responses: two of a host, one of them in two variants, and a large one; the clock then goes on by 100 s.
        func sample(_ store: any CacheStore) async throws {
            let date: HeaderFields = ["Date": HTTPDate(clock.timestamp).description]
            try await fill(
                store,
                [
                    Exchange(
                        url: "https://user:secret@api.example/news?page=2",
                        fields: date.merging(["Cache-Control": "max-age=60", "Content-Type": "text/plain"]),
                        body: "old news",
                        tags: ["news", "front"]
                    ),
                    Exchange(
                        url: "https://api.example/item",
                        fields: date.merging([
                            "Cache-Control": "max-age=3600", "Vary": "Accept", "Content-Type": "application/json",
                        ]),
                        body: "{\"a\": \"ä\"}",
                        accept: "application/json"
                    ),
                    Exchange(
                        url: "https://api.example/item",
                        fields: date.merging([
                            "Cache-Control": "max-age=3600", "Vary": "Accept", "Content-Type": "image/png",
                        ]),
                        body: "\u{1}\u{2}png",
                        accept: "image/png"
                    ),
                    Exchange(
                        url: "https://cdn.example/large",
                        fields: date.merging(["Cache-Control": "max-age=86400"]),
                        body: String(repeating: "0123456789", count: 30_000),
                        tags: ["news"]
                    ),
                ]
            )
            clock.advance(by: .seconds(100))
        }

        /// A sample that no process has open.
        static func closed() async throws -> CacheDirectory {
            let directory = try CacheDirectory()
            let store = try await directory.open()
            try await directory.sample(store)
            await store.close()
            return directory
        }

        /// Every file with its size, time of change and bytes.
        func state() throws -> [String: String] {
            var state: [String: String] = [:]
            let walk = FileManager.default.enumerator(atPath: path)
            for name in (walk?.compactMap { $0 as? String } ?? []) {
                let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
                let bytes = FileManager.default.contents(atPath: path + "/" + name) ?? Data()
                let changed = (attributes[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
                state[name] = "\(bytes.count) \(changed) \(bytes.hashValue)"
            }
            return state
        }
    }

    /// What a command refuses with; nil where it does not.
    func failure(_ body: () async throws -> Void) async throws -> CommandFailure? {
        do {
            try await body()
            return nil
        } catch let failure as CommandFailure {
            return failure
        }
    }
#endif
