// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("The contract of the three closures", .timeLimit(.minutes(20)))
struct ServiceContractTests {
    private let foo = FooRouter()

    @Test("P-T1: the service gets exactly that request and a 200 template whose URL is the request's")
    func exactRequest() async throws {
        let seen = Mutex<(URLRequest, HTTPURLResponse)?>(nil)
        var request = try Foo.request("http://pmapi/foo/bar?x=1") { request, response, responseReturn, _, complete in
            seen.withLock { $0 = (request, response) }
            responseReturn(response)
            complete()
        }
        request.httpMethod = "POST"
        request.httpBody = Data("content")
        let (response, _) = try await foo.call(request)
        let (got, template) = try #require(seen.withLock { $0 })
        #expect(got == request)
        #expect(got.url?.absoluteString == "http://pmapi/foo/bar?x=1")
        #expect(got.allHTTPHeaderFields == request.allHTTPHeaderFields)
        #expect(got.httpMethod == "POST")
        #expect(got.httpBody == Data("content"))
        #expect(template.statusCode == 200)
        #expect(template.url == request.url)
        #expect(response.status == .ok)
        #expect(response.source == .inProcess)
        #expect(response.url == request.url)
    }

    @Test("P-T2: response, data and completion arrive in order, each once")
    func inOrder() async throws {
        let stage = CountWatch()
        let request = try Foo.request { _, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            Task {
                try await stage.wait(for: 1)
                dataReturn(Data("data"))
                try await stage.wait(for: 2)
                complete()
            }
        }
        let response = try await foo.router.processRequest(request)
        #expect(response.status == .ok)
        var body = response.body.makeAsyncIterator()
        stage.increment()
        #expect(try await body.next().map { String(decoding: $0, as: UTF8.self) } == "data")
        stage.increment()
        #expect(try await body.next() == nil)
        #expect(try await body.next() == nil)
        #expect(foo.brokenRules.isEmpty)
    }

    @Test("P-T3: a response without data is a success with an empty body")
    func noData() async throws {
        let (response, text) = try await foo.call { _, response, responseReturn, _, complete in
            responseReturn(response)
            complete()
        }
        #expect(response.status == .ok)
        #expect(text.isEmpty)
    }

    @Test("P-T4: the data of several dataReturn calls is joined in order")
    func chunks() async throws {
        let (_, text) = try await foo.call { _, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            for text in ["one ", "two ", "three"] { dataReturn(Data(text)) }
            complete()
        }
        #expect(text == "one two three")
    }

    @Test("P-T5: dataReturn(nil) and empty data add no bytes and are no error")
    func noBytes() async throws {
        let (_, text) = try await foo.call { _, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            dataReturn(nil)
            dataReturn(Data("a"))
            dataReturn(Data())
            dataReturn(nil)
            dataReturn(Data("b"))
            complete()
        }
        #expect(text == "ab")
        #expect(foo.brokenRules.isEmpty)
    }

    @Test("P-T6: the first of two responses counts, and the second is reported")
    func twoResponses() async throws {
        let (response, text) = try await foo.call { _, response, responseReturn, dataReturn, complete in
            responseReturn(Foo.createResponse(.created, response: response))
            responseReturn(Foo.createResponse(.conflict, response: response))
            dataReturn(Data("data"))
            complete()
        }
        #expect(response.status == 201)
        #expect(text == "data")
        #expect(foo.brokenRules == [.responseReturnedTwice])
    }

    @Test("P-T7: data before the response is reported and not delivered")
    func earlyData() async throws {
        let (response, text) = try await foo.call { _, response, responseReturn, dataReturn, complete in
            dataReturn(Data("early"))
            responseReturn(response)
            dataReturn(Data("late"))
            complete()
        }
        #expect(response.status == .ok)
        #expect(text == "late")
        #expect(foo.brokenRules == [.dataBeforeResponse])
    }

    @Test("P-T8: completion before the response fails the call")
    func earlyCompletion() async throws {
        let error = try #require(await foo.failure { _, _, _, _, complete in complete() })
        #expect(error.code == .protocolError)
        #expect((error.cause as? ServiceContractViolation)?.rule == .completedBeforeResponse)
        #expect(error.message.contains("foo"))
        #expect(foo.brokenRules == [.completedBeforeResponse])
    }

    @Test("P-T9: calls after completion are ignored and reported")
    func afterCompletion() async throws {
        let ended = CountWatch()
        let (response, text) = try await foo.call { _, response, responseReturn, dataReturn, complete in
            responseReturn(response)
            dataReturn(Data("data"))
            complete()
            dataReturn(Data("more"))
            responseReturn(Foo.createResponse(.conflict, response: response))
            complete()
            ended.increment()
        }
        try await ended.wait(for: 1)
        #expect(response.status == .ok)
        #expect(text == "data")
        #expect(foo.brokenRules == [.calledAfterCompletion, .calledAfterCompletion, .calledAfterCompletion])
    }

    @Test("P-T10: a service that drops its closures fails the call, or its body", arguments: [false, true])
    func neverCompleted(afterResponse: Bool) async throws {
        let error = try #require(
            await foo.failure { _, response, responseReturn, dataReturn, _ in
                guard afterResponse else { return }
                responseReturn(response)
                dataReturn(Data("half"))
            }
        )
        #expect(error.code == .protocolError)
        #expect((error.cause as? ServiceContractViolation)?.rule == .neverCompleted)
        #expect(foo.brokenRules == [.neverCompleted])
    }

    @Test("P-T10: closures that are kept and dropped later fail the call too")
    func neverCompletedLater() async throws {
        let gate = CountWatch()
        let error = try #require(
            await foo.failure { _, _, _, _, complete in
                let kept = Mutex<requestCompleteBlock?>(complete)
                gate.increment()
                Task { kept.withLock { $0 = nil } }
            }
        )
        #expect(gate.count == 1)
        #expect((error.cause as? ServiceContractViolation)?.rule == .neverCompleted)
    }

    @Test("P-T11: concurrent calls of one service do not mix")
    func concurrent() async throws {
        let requests = try (0..<40).map { number in
            try Foo.request { _, response, responseReturn, dataReturn, complete in
                let response = Foo.createResponse(.ok, response: response, responseHeaders: ["X-Number": "\(number)"])
                Task {
                    responseReturn(response)
                    for _ in 0..<5 {
                        await Task.yield()
                        dataReturn(Data("\(number),"))
                    }
                    complete()
                }
            }
        }
        try await withThrowingTaskGroup(of: (Int, String?, String).self) { group in
            for (number, request) in requests.enumerated() {
                group.addTask { [foo] in
                    let (response, text) = try await foo.call(request)
                    return (number, response.fields["X-Number"], text)
                }
            }
            for try await (number, field, text) in group {
                #expect(field == "\(number)")
                #expect(text == String(repeating: "\(number),", count: 5))
            }
        }
        #expect(foo.brokenRules.isEmpty)
    }
}
