// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Crypto || canImport(CryptoKit)
    import Foundation
    import Holdfast
    import HoldfastCrypto
    import HoldfastTesting
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// The code of `HoldfastCrypto.docc`: article, and the steps from first to last.
    @Suite("Catalog: HoldfastCrypto", .timeLimit(.minutes(20)))
    struct HoldfastCryptoCatalogTests {
        func makeSeal(_ bytes: [UInt8]) throws -> AEADSeal {
            try AEADSeal(current: SealingKey(id: 1, bytes: bytes))
        }

        func openCache(at directory: URL, sealedBy seal: AEADSeal) async throws -> HTTPCache {
            try await HTTPCache.onDisk(at: directory, capacity: 64 << 20, seal: seal)
        }

        func makeSeal(_ bytes: [UInt8], retiring old: [UInt8]) throws -> AEADSeal {
            try AEADSeal(
                current: SealingKey(id: 2, bytes: bytes),
                retired: [SealingKey(id: 1, bytes: old)]
            )
        }

        private func makeDirectory() -> URL {
            FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
        }

        private func makeKeyBytes() throws -> [UInt8] {
            let key = try SealingKey.random(id: 1)
            let bytes = key.withUnsafeBytes { Array($0) }
            return bytes
        }

        @Test("A key from storage, a sealed cache, a key change")
        func sealing() async throws {
            let directory = makeDirectory()
            defer { try? FileManager.default.removeItem(at: directory) }
            let bytes = try makeKeyBytes()
            let key = try SealingKey(id: 1, bytes: bytes)
            let newKey = try SealingKey.random(id: 2)
            do {
                let seal = try AEADSeal(current: key)
                let cache = try await HTTPCache.onDisk(at: directory, capacity: 64 << 20, seal: seal)
                #expect(cache.statistics.requests == 0)
                await cache.close()
            }
            do {
                let seal = try AEADSeal(current: newKey, retired: [key])
                #expect(seal.keyID == 2)
            }
        }

        /// Where a response comes from if a client with a cache in this directory asks for it.
        private func source(in directory: URL, sealedBy seal: AEADSeal) async throws -> ResponseSource {
            let cache = try await openCache(at: directory, sealedBy: seal)
            let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=600"], body: "hello")])
            let client = Pipeline(transport: transport, cache: cache)
            let request = URLRequest(url: try #require(URL(string: "http://origin.example/a")))
            let response = try await client.send(request)
            #expect(try await response.body.data() == Data("hello".utf8))
            await client.drain()
            await cache.close()
            return response.source
        }

        @Test("Sealed entries are found after a key change only if the old key is available")
        func tutorial() async throws {
            let directory = makeDirectory()
            defer { try? FileManager.default.removeItem(at: directory) }
            let (old, new) = (try makeKeyBytes(), try makeKeyBytes())
            #expect(try await source(in: directory, sealedBy: makeSeal(old)) == .network(attempts: 1))
            #expect(try await source(in: directory, sealedBy: makeSeal(new, retiring: old)) == .fresh)
            #expect(
                try await source(in: directory, sealedBy: AEADSeal(current: SealingKey(id: 2, bytes: new)))
                    == .network(attempts: 1)
            )
        }

        @Test("What was removed while its key was missing does not come back with the key")
        func removedWithoutItsKey() async throws {
            let directory = makeDirectory()
            defer { try? FileManager.default.removeItem(at: directory) }
            let (old, new) = (try makeKeyBytes(), try makeKeyBytes())
            #expect(try await source(in: directory, sealedBy: makeSeal(old)) == .network(attempts: 1))
            let blind = try await openCache(at: directory, sealedBy: AEADSeal(current: SealingKey(id: 2, bytes: new)))
            try await blind.remove(.all)
            await blind.close()
            #expect(try await source(in: directory, sealedBy: makeSeal(new, retiring: old)) == .network(attempts: 1))
        }
    }
#endif
