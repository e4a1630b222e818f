// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    import Foundation
    import Holdfast
    import HoldfastServices
    import HoldfastTesting
    import HoldfastXML
    import Testing
    import XMLCoder

    /// The code of `HoldfastXML.docc`: article, and the steps from first to last.
    @Suite("Catalog: HoldfastXML", .timeLimit(.minutes(20)))
    struct HoldfastXMLCatalogTests {
        struct Order: Codable, Sendable, Equatable {
            let item: Int
            let count: Int
        }

        struct Warehouse: WebService {
            static let url = URL(string: "https://warehouse.example/api") ?? URL(filePath: "/")
            static let shared = ServiceClient(Warehouse(), retrierFactory: .default)
            let baseURL = Warehouse.url
        }

        struct SaveOrder: InOutEndpoint {
            typealias Service = Warehouse
            typealias Input = Order
            typealias Output = Order
            static let method = Method.post
            static let inputFormat = InputFormat.XML(rootNode: "order")
            static let outputFormat = OutputFormat.XML
            let path = "orders"
        }

        func save(_ order: Order, in warehouse: ServiceClient<Warehouse> = Warehouse.shared) async throws -> Order {
            try await SaveOrder().makeRequest(to: warehouse, with: order)
        }

        struct SortedWarehouse: WebService, XMLConfiguring {
            static let shared = ServiceClient(SortedWarehouse())
            let baseURL = Warehouse.url

            func configure(_ encoder: XMLEncoder) throws {
                encoder.outputFormatting = .sortedKeys
            }
        }

        private static let answer = "<order><item>7</item><count>2</count></order>"

        @Test("An order is sent as XML and returned as a value")
        func saving() async throws {
            let transport = ScriptedTransport([.respond(200, body: Self.answer)], repeatsLastStep: true)
            let client = ServiceClient(Warehouse(), transport: transport)
            let saved = try await SaveOrder().makeRequest(to: client, with: Order(item: 7, count: 2))
            #expect(saved == Order(item: 7, count: 2))
            #expect(try await save(saved, in: client) == saved)
            let sent = String(decoding: try #require(transport.sent.first?.body).array, as: UTF8.self)
            #expect(sent.contains("<order>"))
        }

        @Test("A service that configures its encoder, and tight limits")
        func settings() throws {
            var limits = XMLLimits()
            limits.bytes = 64 << 10
            limits.depth = 8
            let format = OutputFormat.XML(limits: limits)
            let encoder = XMLEncoder()
            try SortedWarehouse().configure(encoder)
            #expect(encoder.outputFormatting == .sortedKeys)
            #expect(format.description == OutputFormat.XML.description)
        }
    }
#endif
