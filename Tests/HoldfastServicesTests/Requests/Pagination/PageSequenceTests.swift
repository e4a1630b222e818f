// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Numbers: JsonRequest {
    typealias Result = PaginatedData<Int>
    var routes: HttpRoute { ["numbers"] }
    var query: HttpQuery { ["sort": "up", "page": 99] }
}

private struct Cursored: JsonRequest {
    struct Result: Decodable, Sendable {
        let items: [Int]
        let next: String?
    }
}

@Suite("Pages of a result", .timeLimit(.minutes(20)))
struct PageSequenceTests {
    /// A client, and what it sent, of a server with so many pages.
    private func client(
        pages total: Int,
        failingAt failing: Int? = nil,
        from first: Int = 1,
        named name: String = "page"
    ) -> (ServiceClient<AnyHttpService>, ScriptedTransport) {
        let transport = ScriptedTransport { request in
            let items = request.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: false)?.queryItems } ?? []
            let page = items.first { $0.name == name }?.value.flatMap { Int($0) } ?? -1
            if page == failing { return .respond(500) }
            return .respond(200, body: #"{"page": \#(page), "total_pages": \#(total), "data": [\#(page * 10)]}"#)
        }
        return (ServiceClient(AnyHttpService(at: "api.example.com"), transport: transport), transport)
    }

    /// What the next page fails with.
    private func failure<Page: Request, Service: HttpService>(
        _ pages: inout PageSequence<Page, Service>.Iterator
    ) async -> ServiceError? {
        do {
            _ = try await pages.next()
            return nil
        } catch {
            return error as? ServiceError
        }
    }

    @Test("A page has the name of the request whose page it is, for hooks of both kinds")
    func name() async throws {
        let log = CallFixtures.Log()
        let logger = CallLogger { log.note($0) }
        let client = ServiceClient(
            AnyHttpService(at: "api.example.com"),
            transport: ScriptedTransport([.respond(200, body: #"{"page": 1, "total_pages": 1, "data": [1]}"#)]),
            hooks: [logger],
            requestHooks: [logger]
        )
        for try await _ in Numbers().pages(.numbered(), with: client) {}
        #expect(log.entries.count > 1)
        #expect(log.entries.allSatisfy { $0.contains("Numbers") && !$0.contains("PaginatedRequest") })
    }

    private func queries(_ transport: ScriptedTransport) -> [String?] {
        transport.sent.map { $0.request.url?.query }
    }

    @Test("Pages come in order, from 1 to the last, and then end")
    func inOrder() async throws {
        let (client, transport) = client(pages: 3)
        var data: [Int] = []
        var pages = Numbers().pages(.numbered(chunk: 50), with: client).makeAsyncIterator()
        while let page = try await pages.next() { data += page.data }
        #expect(data == [10, 20, 30])
        #expect(try await pages.next() == nil)
        #expect(queries(transport) == (1...3).map { "chunk=50&page=\($0)&sort=up" })
        #expect(transport.sent.first?.request.url?.path == "/numbers")
    }

    @Test("A page is requested when the reader wants it, and none after the reader left")
    func lazily() async throws {
        let (client, transport) = client(pages: 9)
        let sequence = Numbers().pages(.numbered(), with: client)
        var pages = sequence.makeAsyncIterator()
        #expect(transport.sent.isEmpty)
        _ = try await pages.next()
        #expect(transport.sent.count == 1)
        for try await page in sequence where page.page == 2 { break }
        #expect(queries(transport) == [1, 1, 2].map { "page=\($0)&sort=up" })
    }

    @Test(
        "Names, page size and first number can be chosen for each API",
        arguments: [(0, 3, [0, 1, 2]), (1, 2, [1, 2]), (5, 1, [5])]
    )
    func names(_ first: Int, _ total: Int, _ expected: [Int]) async throws {
        let (client, transport) = client(pages: total, named: "p")
        let pagination = Pagination<PaginatedData<Int>>.numbered("p", chunkName: "size", chunk: 7, from: first)
        var numbers: [Int] = []
        for try await page in Numbers().pages(pagination, with: client) { numbers.append(page.page) }
        #expect(numbers == expected)
        #expect(queries(transport).first == "p=\(first)&page=99&size=7&sort=up")
    }

    @Test("Without any pages there is one empty page, which is the last", arguments: [0, 1])
    func none(_ first: Int) async throws {
        let (client, transport) = client(pages: 0)
        var count = 0
        for try await page in Numbers().pages(.numbered(from: first), with: client) {
            count += 1
            #expect(page.isLastPage)
        }
        #expect(count == 1)
        #expect(transport.sent.count == 1)
    }

    @Test(
        "A page is the last if its number is not less than the total",
        arguments: [(1, 0, true), (1, 2, false), (2, 2, true), (3, 2, true)]
    )
    func isLast(_ page: Int, _ total: Int, _ expected: Bool) {
        let page = PaginatedData(page: page, totalPages: total, data: ["a", "b"])
        #expect(page.isLastPage == expected)
        #expect(page.count == 2)
    }

    @Test("A page that says it is the last is the last, whatever the total")
    func saysSo() async throws {
        struct Short: NumberedPage, Decodable {
            let page: Int
            let totalPages: Int
            var isLastPage: Bool { page == 2 }
        }
        struct Shorts: JsonRequest {
            typealias Result = Short
        }
        let (client, transport) = client(pages: 9)
        for try await _ in Shorts().pages(.numbered(), with: client) {}
        #expect(transport.sent.count == 2)
    }

    @Test("An error ends the pages, and nothing is sent after it")
    func failure() async throws {
        let (client, transport) = client(pages: 3, failingAt: 2)
        var pages = Numbers().pages(.numbered(), with: client).makeAsyncIterator()
        #expect(try await pages.next()?.page == 1)
        #expect(await failure(&pages) != nil)
        #expect(try await pages.next() == nil)
        #expect(transport.sent.count == 2)
    }

    @Test("Errors have the service's type")
    func typed() async throws {
        enum ApiError: Error { case broken }
        struct Mapping: HttpService {
            var apiUrl: any UrlConvertible { "api.example.com" }
            func mapError(_ error: any Error) -> ApiError { .broken }
        }
        let client = ServiceClient(Mapping(), transport: ScriptedTransport([.respond(500)]))
        do throws(ApiError) {
            for try await _ in Numbers().pages(.numbered(), with: client) {}
            Issue.record("the page was broken")
        } catch {
            #expect(error == .broken)
        }
    }

    @Test(
        "A page keeps all that its request sets: URL, protocol, method, header, content, prepare, timeout and the rest"
    )
    func keeps() async throws {
        var base = AnyRequest(.post, url: "other.example", header: ["X": "1"], body: .data(Data("b".utf8))) { data in
            try JSONDecoder().decode(Int.self, from: data)
        }
        base.usesSecureProtocol = false
        base.acceptedStatusCodes = 201...201
        base.authorizationRequirement = .none
        base.priority = .utility
        base.timeout = .seconds(3600)
        base.contentLimit = 5
        base.options.tags = ["t"]
        base.preparing = { built in
            var built = built
            built.setValue("p", forHTTPHeaderField: "Prepared")
            return built
        }
        let transport = ScriptedTransport([.respond(201, body: "1"), .respond(201, body: "2")])
        var service = AnyHttpService(at: "api.example.com")
        service.header = ["Authorization": "secret"]
        let client = ServiceClient(service, transport: transport)
        let pagination = Pagination<Int>.numbered { page, _ in page == 2 }
        var results: [Int] = []
        for try await page in base.pages(pagination, with: client) { results.append(page) }
        #expect(results == [1, 2])
        for sent in transport.sent {
            #expect(sent.request.url?.scheme == "http")
            #expect(sent.request.url?.host == "other.example")
            #expect(sent.request.httpMethod == "POST")
            #expect(sent.request.networkServiceType == .background)
            #expect(["X", "Prepared", "Authorization"].map { sent.field($0) } == ["1", "p", nil])
            #expect(sent.body.map { String(decoding: $0, as: UTF8.self) } == "b")
        }
        struct Looking: RequestHook {
            let log: CallFixtures.Log
            func onSchedule<R: Request>(_ request: R, _ urlRequest: URLRequest) -> R.Result? {
                log.note("\(request.timeout ?? .zero) \(request.contentLimit) \(request.options.tags)")
                return nil
            }
        }
        let log = CallFixtures.Log()
        let looking = ServiceClient(
            service,
            transport: ScriptedTransport([.respond(201, body: "2")]),
            requestHooks: [Looking(log: log)]
        )
        for try await _ in base.pages(pagination, with: looking) {}
        #expect(log.entries == ["\(Duration.seconds(3600)) 5 [\"t\"]"])
    }

    @Test(
        "The cursor of each page requests the next; none or an empty one ends the pages",
        arguments: ["null", "\"\""]
    )
    func cursors(_ last: String) async throws {
        let transport = ScriptedTransport([
            .respond(200, body: #"{"items": [1], "next": "a&b"}"#),
            .respond(200, body: #"{"items": [2], "next": \#(last)}"#),
        ])
        let client = ServiceClient(AnyHttpService(at: "api.example.com"), transport: transport)
        var items: [Int] = []
        for try await page in Cursored().pages(.cursor("after") { $0.next }, with: client) { items += page.items }
        #expect(items == [1, 2])
        #expect(queries(transport) == [nil, "after=a%26b"])
    }

    @Test("Pages that lead back to an earlier one end with an error and do not loop", arguments: [1, 2, 3, 40])
    func cycle(_ length: Int) async throws {
        let transport = ScriptedTransport { request in
            let text = request.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: false) }?.queryItems?
                .first?.value
            let page = text.flatMap { Int($0) } ?? 0
            return .respond(200, body: #"{"items": [1], "next": "\#((page + 1) % length)"}"#)
        }
        let client = ServiceClient(AnyHttpService(at: "api.example.com"), transport: transport)
        var pages = Cursored().pages(.cursor { $0.next }, with: client).makeAsyncIterator()
        // The first page is asked for without a cursor, and so once more with one.
        for _ in 0...length { _ = try await pages.next() }
        #expect(await failure(&pages) != nil)
        #expect(try await pages.next() == nil)
        #expect(transport.sent.count == length + 1)
    }

    @Test("A page that names itself as the next ends with an error and does not loop")
    func loop() async throws {
        let transport = ScriptedTransport([.respond(200, body: #"{"items": [1], "next": "a"}"#)], repeatsLastStep: true)
        let client = ServiceClient(AnyHttpService(at: "api.example.com"), transport: transport)
        var pages = Cursored().pages(.cursor { $0.next }, with: client).makeAsyncIterator()
        for _ in 0..<2 { _ = try await pages.next() }
        #expect(await failure(&pages) != nil)
        #expect(try await pages.next() == nil)
        #expect(transport.sent.count == 2)
    }
}
