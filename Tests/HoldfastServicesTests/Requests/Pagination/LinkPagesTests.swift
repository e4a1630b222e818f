// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Pages found by links", .timeLimit(.minutes(20)))
struct LinkPagesTests {
    @Test(
        "Links lead from page to page: resolved, with the service's credential, and the request's own query only once"
    )
    func links() async throws {
        let transport = ScriptedTransport([
            .respond(200, ["Link": #"</x?page=2>; rel="prev next", </x?page=9>; rel=last"#], body: "1"),
            .respond(200, ["Link": "<https://API.example.com:443/x?page=3>; rel=next"], body: "2"),
            .respond(200, ["Link": #"</x?page=2>; rel="prev""#], body: "3"),
        ])
        var service = AnyHttpService(at: "api.example.com")
        service.header = ["Authorization": "t"]
        let client = ServiceClient(service, transport: transport)
        var results: [String] = []
        for try await page in AnyRequest(routes: ["x"], query: ["q": 1]).pages(.links, with: client) {
            results.append(String(decoding: page, as: UTF8.self))
        }
        #expect(results == ["1", "2", "3"])
        #expect(
            transport.sent.map { $0.request.url?.absoluteString } == [
                "https://api.example.com/x?q=1", "https://api.example.com/x?page=2",
                "https://API.example.com:443/x?page=3",
            ]
        )
        #expect(transport.sent.allSatisfy { $0.field("Authorization") == "t" })
    }

    @Test(
        "Links that lead back to a page in another spelling of its URL end with an error and do not loop",
        arguments: [
            "</x?page=2#%d>", "<https://API.example.com:443/x?page=2#%d>", "</y/../x?page=2>", "</%%78?page=2>",
        ]
    )
    func respelled(_ link: String) async throws {
        let answers = Mutex(0)
        let transport = ScriptedTransport { _ in
            let number = answers.withLock { answers in
                answers += 1
                return answers
            }
            guard number < 20 else { return .respond(200) }
            return .respond(200, ["Link": String(format: link, number) + "; rel=next"], body: "1")
        }
        let client = ServiceClient(AnyHttpService(at: "api.example.com"), transport: transport)
        var error: (any Error)?
        do {
            for try await _ in AnyRequest(routes: ["x"]).pages(.links, with: client) {}
        } catch let thrown {
            error = thrown
        }
        #expect((error as? ServiceError)?.code == .protocolError)
        #expect(transport.sent.count == 2)
    }

    @Test(
        "A link to another origin is refused, because the request has credentials; also after a redirect there",
        arguments: [nil, "https://evil.example/x"] as [String?]
    )
    func foreignLink(_ redirect: String?) async throws {
        let log = CallFixtures.Log()
        let page = ScriptedTransport.Step.respond(200, ["Link": "<https://evil.example/y>; rel=next"], body: "1")
        let transport = ScriptedTransport((redirect.map { [.respond(307, ["Location": $0])] } ?? []) + [page])
        var service = CallFixtures.service(log)
        service.header = ["Authorization": "t"]
        let client = ServiceClient(service, transport: transport)
        var pages = AnyRequest(routes: ["x"]).pages(.links, with: client).makeAsyncIterator()
        #expect(try await pages.next() == Data("1".utf8))
        var error: ServiceError?
        do {
            _ = try await pages.next()
        } catch let thrown as ServiceError {
            error = thrown
        }
        #expect(error?.code == .badRequest)
        #expect(try await pages.next() == nil)
        #expect(transport.sent.count == (redirect == nil ? 1 : 2))
        #expect(log.entries == ["process(bad-request)"])
    }

    @Test(
        "Link fields are parsed as in RFC 8288",
        arguments: [
            (#"<a>; rel=next"#, "a"), (#"<a>;rel="NEXT""#, "a"),
            (#"<a>; title="x, <b>; rel=next"; rel=prev, <c>; rel=next"#, "c"),
            (#"<a>; rel=prev; rel=next"#, nil), (#"<a>; rel=next; anchor="/other""#, nil), (#"a; rel=next"#, nil),
            ("<a", nil),
            (#"<a>; rel="x \"next"#, nil), (#"<a> ; rel = next"#, "a"), (#", ,<a>; rel=next"#, "a"), ("", nil),
            (#"<a>; nextish; rel="first next""#, "a"),
        ] as [(String, String?)]
    )
    func linkFields(_ value: String, _ expected: String?) async throws {
        let transport = ScriptedTransport([.respond(200, ["Link": value]), .respond(200)])
        let client = ServiceClient(AnyHttpService(at: "api.example.com/v1/"), transport: transport)
        for try await _ in AnyRequest().pages(.links, with: client) {}
        #expect(
            transport.sent.dropFirst().first?.request.url?.absoluteString
                == expected.map { "https://api.example.com/v1/\($0)" }
        )
    }
}
