// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The types of the articles in `HoldfastServices.docc`.
private enum Catalog {
    enum Settings {
        static let shopURL = URL(string: "https://shop.example/v1") ?? URL(filePath: "/")
    }

    struct Library: HttpService {
        var apiUrl: any UrlConvertible { "library.example/v1" }
        var header: HttpHeader { ["X-Client": "reader/1.0"] }
    }

    struct Book: Codable, Sendable, Equatable {
        let id: Int
        let title: String
    }

    struct GetBook: JsonRequest {
        typealias Result = Book
        let id: Int
        var routes: HttpRoute { ["books", id] }
    }

    struct AddBook: JsonRequest {
        typealias Result = Book
        let book: Book
        var method: HttpMethod { .post }
        var routes: HttpRoute { ["books"] }
        var body: HttpBody { .json(book) }
    }

    struct ListBooks: JsonRequest {
        typealias Result = PaginatedData<Book>
        var routes: HttpRoute { ["books"] }
    }

    struct Receipt: Codable, Sendable, Equatable {
        let number: Int
    }

    struct Order: Encodable, Sendable {
        let item: Int
    }

    struct Shop: WebService {
        static let shared = ServiceClient(Shop(), cache: .default, retrierFactory: .default)
        let baseURL = Settings.shopURL
    }

    struct GetPrice: OutEndpoint {
        typealias Service = Shop
        struct Output: Decodable, Sendable { let cents: Int }
        let item: Int
        var path: String { "prices/\(item)" }
    }

    struct Greetings: InProcessService {
        let serviceIdentifier = "greetings"

        func respond(to request: URLRequest, body: RequestBody) async throws -> Response {
            Response(
                status: .ok,
                fields: ["Content-Type": "text/plain", "Cache-Control": "max-age=60"],
                body: ResponseBody { writer in
                    for word in ["hello, ", "world"] { try await writer.write(word) }
                }
            )
        }
    }
}

/// The code of the articles in `HoldfastServices.docc`.
@Suite("Catalog: HoldfastServices", .timeLimit(.minutes(20)))
struct HoldfastServicesCatalogTests {
    private typealias Library = Catalog.Library
    private typealias Book = Catalog.Book
    private typealias GetBook = Catalog.GetBook
    private typealias ListBooks = Catalog.ListBooks
    private typealias Receipt = Catalog.Receipt
    private typealias Order = Catalog.Order
    private typealias GetPrice = Catalog.GetPrice
    private typealias Greetings = Catalog.Greetings

    @Test("Making a client and calling; cancelled before it begins, so nothing is sent to a host that does not exist")
    func client() async throws {
        func load() async throws -> Book {
            let client = ServiceClient(Library(), cache: .default, retrierFactory: .default)
            let book = try await GetBook(id: 7).schedule(with: client)
            return book
        }
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await load()
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("Sending content")
    func content() async throws {
        let mock = ServiceMock()
        let book = Book(id: 8, title: "Persuasion")
        mock.expect(.post, path: "/v1/books", respond: try .json(book, status: 201))
        let client = ServiceClient(Library(), transport: mock)
        #expect(try await Catalog.AddBook(book: book).schedule(with: client) == book)
        try mock.verify()
    }

    @Test("Pages")
    func pages() async throws {
        let mock = ServiceMock()
        mock.expect(
            .get,
            path: "/v1/books",
            respond: .content(#"{"page": 1, "total_pages": 1, "data": [{"id": 7, "title": "Emma"}]}"#)
        )
        let client = ServiceClient(Library(), transport: mock)
        var titles: [String] = []
        for try await page in ListBooks().pages(.numbered(chunk: 50), with: client) {
            titles += page.data.map(\.title)
        }
        #expect(titles == ["Emma"])
    }

    @Test("A mock")
    func mocked() async throws {
        let mock = ServiceMock()
        mock.expect(.get, path: "/v1/books/7", respond: try .json(Book(id: 7, title: "Emma")))
        let tested = ServiceClient(Library(), transport: mock)
        let found = try await GetBook(id: 7).schedule(with: tested)
        try mock.verify()
        #expect(found.title == "Emma")
    }

    @Test("A proxy")
    func proxy() async throws {
        let transport = ServiceMock()
        let baseURL = Catalog.Settings.shopURL
        transport.expect(.get, path: "/v1/fibonacci", respond: .content("[1, 1, 2]"))
        transport.expect(.post, path: "/v1/orders", respond: .content(#"{"number": 4}"#))
        transport.expect(.delete, path: "/v1/orders/9", respond: .status(404))
        let proxy = WebServiceProxy(transport: transport, baseURL: baseURL, cache: .default)
        let numbers: [Int] = try await proxy.invoke(.get, path: "fibonacci", arguments: ["count": 8])
        let receipt: Receipt = try await proxy.invoke(.post, path: "orders", body: Order(item: 7))
        do {
            try await proxy.invoke(.delete, path: "orders/9")
        } catch let error as WebServiceError {
            print(error)
        }
        #expect(numbers == [1, 1, 2])
        #expect(receipt == Receipt(number: 4))
        try transport.verify()
    }

    @Test("An endpoint")
    func endpoint() async throws {
        let mock = ServiceMock()
        mock.expect(GetPrice.self, path: "prices/7", respond: .content(#"{"cents": 250}"#))
        let shop = mock.client(of: Catalog.Shop())
        let price = try await GetPrice(item: 7).makeRequest(to: shop)
        #expect(price.cents == 250)
    }

    @Test("A service in this process")
    func inProcess() async throws {
        let router = ServiceRouter(services: [Greetings()])
        let client = Pipeline(transport: router, cache: .default)
        let response = try await router.processRequest(serviceId: "greetings", through: client)
        #expect(try await response.body.data() == Data("hello, world".utf8))
    }

    @Test("A stand-in for a server")
    func standIn() async throws {
        let network = ScriptedTransport([.respond(404)])
        let mock = ServiceRouter(apiHostname: "api.example.com", services: [Greetings()], next: network)
        let client = Pipeline(transport: mock)
        let url = try #require(URL(string: "https://api.example.com/greetings"))
        #expect(try await client.data(from: url).0 == Data("hello, world".utf8))
        let other = try #require(URL(string: "https://other.example/"))
        #expect(try await client.send(URLRequest(url: other)).status == .notFound)
    }
}
