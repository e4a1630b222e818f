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

    /// The code of docs/operating/encryption.md.
    @Suite("The page on encryption at rest", .timeLimit(.minutes(20)))
    struct EncryptionPageTests {
        /// Loads one URL through a cache on the disk; says where the answer came from.
        private func load(at directory: URL, _ seal: AEADSeal) async throws -> ResponseSource {
            let cache = try await HTTPCache.onDisk(at: directory, capacity: 64 << 20, seal: seal)
            let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=600"], body: "hello")])
            let client = Pipeline(transport: transport, cache: cache)
            let url = try #require(URL(string: "http://origin.example/a"))
            let response = try await client.send(URLRequest(url: url))
            _ = try await response.body.data()
            await client.drain()
            await cache.close()
            return response.source
        }

        private func makeSeal(_ bytesFromTheKeychain: [UInt8]) throws -> AEADSeal {
            let key = try SealingKey(id: 1, bytes: bytesFromTheKeychain)
            let seal = try AEADSeal(current: key)
            return seal
        }

        private func makeSeal(_ newKey: SealingKey, after oldKey: SealingKey) throws -> AEADSeal {
            let seal = try AEADSeal(current: newKey, retired: [oldKey])
            return seal
        }

        @Test("A sealed cache can be read with its key, and with a new key that has the old one beside it")
        func keys() async throws {
            let directory = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: directory) }
            let oldKey = try SealingKey.random(id: 1)
            let bytes = oldKey.withUnsafeBytes { Array($0) }
            let newKey = try SealingKey.random(id: 2)
            #expect(try await load(at: directory, makeSeal(bytes)) == .network(attempts: 1))
            #expect(try await load(at: directory, makeSeal(bytes)) == .fresh)
            #expect(try await load(at: directory, makeSeal(newKey, after: oldKey)) == .fresh)
            #expect(try await load(at: directory, AEADSeal(current: newKey)) == .network(attempts: 1))
        }
    }
#endif
