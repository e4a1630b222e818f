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

@Suite("Message streams", .timeLimit(.minutes(20)))
struct MessageStreamTests {
    @Test(
        "S30: a message that cannot be decoded is a failure among the results, reported to all, and the stream continues"
    )
    func failedMessages() async throws {
        let transport = ScriptedStreamTransport()
        let service = StreamService()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        transport.connection.push(.text("one"), .text("bad"), .binary(Data("two".utf8)), .binary(Data([0xFF])))
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next()?.get() == "one")
        let failed = try #require(try await iterator.next()?.failure as? ServiceError)
        #expect(failed.code == .decodingFailed)
        #expect(failed.cause is ChatRequest.BadMessage)
        #expect(
            service.log.lines.prefix(3) == [
                "second decoding-failed", "first decoding-failed", "process decoding-failed",
            ]
        )
        #expect(try await iterator.next()?.get() == "two")
        #expect((try await iterator.next()?.failure as? ServiceError)?.code == .decodingFailed)
        #expect(service.log.lines.count == 6)
        stream.close()
    }

    @Test(
        "S30, S-T40: the sequence throws the peer's close code once; hooks, then `process`, are told before",
        arguments: [1000, 1001, 1011, 4000] as [UInt16]
    )
    func closedByPeer(_ code: UInt16) async throws {
        let transport = ScriptedStreamTransport()
        let service = StreamService()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        let closure = StreamClosedError(StreamCloseCode(rawValue: code), reason: "over")
        transport.connection.push(.text("last"))
        transport.connection.push(failure: closure)
        try await service.log.count.wait(for: 3)
        var results: [String] = []
        await #expect(throws: closure) {
            for try await result in stream { results.append(try result.get()) }
        }
        #expect(results == ["last"])
        #expect(service.log.lines == ["second closed \(code)", "first closed \(code)", "process closed \(code)"])
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next() == nil)
        await #expect(throws: closure) { try await stream.send("late") }
        await #expect(throws: closure) { try await stream.ping() }
        #expect(service.log.lines.count == 3)
    }

    @Test(
        "S-T40: a stream that fails, during opening or later, asks no retrier and opens once",
        arguments: [true, false]
    )
    func noRetrier(whileOpening: Bool) async throws {
        let asked = CountWatch()
        let failure = ServiceError(.connectionLost, "scripted", progress: .notSent)
        let transport = ScriptedStreamTransport(failure: whileOpening ? failure : nil)
        var service = StreamService(streamTransport: transport)
        service.retrierFactory = AnyRetrierFactory { _ in
            asked.increment()
            return NilRetrier()
        }
        let stream = ChatRequest().schedule(with: ServiceClient(service))
        if !whileOpening { transport.connection.push(failure: failure) }
        await #expect {
            for try await _ in stream {}
        } throws: { error in
            (error as? ServiceError)?.code == .connectionLost
        }
        #expect(asked.count == 0)
        #expect(transport.opens.count == 1)
        #expect(
            service.log.lines == [
                "second connection-lost", "first connection-lost", "process connection-lost",
            ]
        )
        await #expect(throws: ServiceError.self) { try await stream.waitUntilOpen() }
    }

    @Test("A request that cannot be built opens nothing, and its failure is reported like any other")
    func cannotBeBuilt() async throws {
        let service = StreamService(apiUrl: "")
        let transport = ScriptedStreamTransport()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        await #expect(throws: ServiceError.self) { for try await _ in stream {} }
        #expect(transport.requests.isEmpty)
        #expect(service.log.lines == ["second bad-request", "first bad-request", "process bad-request"])
    }

    @Test(
        "S16: callers get the mapped error for a message, the end and a send; hooks and `process` get the original"
    )
    func mapped() async throws {
        enum AppError: Error, Equatable { case coding, over, other }
        struct MappingService: HttpService {
            typealias RequestError = AppError
            let log = StreamLog()
            var apiUrl: any UrlConvertible { "api.example.com" }
            func process(_ error: any Error) { log.note("process", error) }
            func mapError(_ error: any Error) -> AppError {
                if error is StreamClosedError { return .over }
                let code = (error as? ServiceError)?.code
                return code == .decodingFailed || code == .encodingFailed ? .coding : .other
            }
        }
        let transport = ScriptedStreamTransport()
        let service = MappingService()
        let stream = ChatRequest().schedule(with: ServiceClient(service), over: transport)
        await #expect(throws: AppError.coding) { try await stream.send("bad") }
        transport.connection.push(.text("bad"))
        transport.connection.push(failure: StreamClosedError(.normalClosure))
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next()?.failure == .coding)
        do throws(AppError) {
            _ = try await iterator.next()
            Issue.record("an error was expected")
        } catch {
            #expect(error == .over)
        }
        #expect(service.log.lines == ["process encoding-failed", "process decoding-failed", "process closed 1000"])
    }

    @Test("A second concurrent reader is refused; readers one after the other share the messages")
    func oneReader() async throws {
        let transport = ScriptedStreamTransport()
        let stream = ChatRequest().schedule(with: ServiceClient(StreamService()), over: transport)
        try await stream.waitUntilOpen()
        let outcomes = await withTaskGroup(of: String.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var iterator = stream.makeAsyncIterator()
                    do {
                        return try await iterator.next()?.get() ?? "nil"
                    } catch {
                        return (error as? ServiceError)?.code.description ?? "\(error)"
                    }
                }
            }
            let first = await group.next()
            transport.connection.push(.text("one"))
            return [first, await group.next()]
        }
        #expect(outcomes == ["unsupported", "one"])
        transport.connection.push(.text("two"))
        for try await result in stream {
            #expect(try result.get() == "two")
            break
        }
    }

    @Test("Few messages wait for the reader, and then the peer has to wait")
    func backPressure() async throws {
        let transport = ScriptedStreamTransport()
        var request = ChatRequest()
        request.limits.unreadMessages = 2
        let stream = request.schedule(with: ServiceClient(StreamService()), over: transport)
        for number in 0..<10 { transport.connection.push(.text("\(number)")) }
        try await transport.connection.received.wait(for: 2)
        // Whatever else could run gets the chance to.
        for _ in 0..<200 { await Task.yield() }
        #expect(transport.connection.received.count == 2)
        var iterator = stream.makeAsyncIterator()
        for number in 0..<10 { #expect(try await iterator.next()?.get() == "\(number)") }
        #expect(transport.connection.received.count >= 10)
    }

    @Test("S12: a message longer than the limit ends the stream with code 1009")
    func tooLong() async throws {
        let transport = ScriptedStreamTransport()
        var request = ChatRequest()
        request.limits.messageSize = 4
        let service = StreamService()
        let stream = request.schedule(with: ServiceClient(service), over: transport)
        transport.connection.push(.text("1234"), .text("12345"))
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next()?.get() == "1234")
        await #expect {
            _ = try await iterator.next()
        } throws: { error in
            (error as? ServiceError)?.code == .bodyTooLarge
        }
        #expect(transport.connection.closes.map(\.code) == [.messageTooBig])
        #expect(service.log.lines.last == "process body-too-large")
    }

    @Test("Messages of each kind keep it, and JSON streams take text and bytes in snake_case")
    func kinds() async throws {
        struct Reading: Codable, Hashable { var sensorName: String }
        struct ReadingRequest: JsonStreamRequest {
            typealias Message = Reading
            typealias Result = Reading
        }
        let transport = ScriptedStreamTransport()
        let client = ServiceClient(StreamService())
        let stream = ReadingRequest().schedule(with: client, over: transport)
        try await stream.send(Reading(sensorName: "a"))
        #expect(transport.connection.sent == [.text(#"{"sensor_name":"a"}"#)])
        transport.connection.push(.binary(Data(#"{"sensor_name":"b"}"#.utf8)), .text(#"{"sensor_name":"c"}"#))
        var iterator = stream.makeAsyncIterator()
        #expect(try await iterator.next()?.get() == Reading(sensorName: "b"))
        #expect(try await iterator.next()?.get() == Reading(sensorName: "c"))

        let plain = ScriptedStreamTransport()
        let raw = AnyStreamRequest(routes: ["raw"]).schedule(with: client, over: plain)
        try await raw.send(.binary(Data([1])))
        plain.connection.push(.binary(Data([2])))
        var messages = raw.makeAsyncIterator()
        #expect(try await messages.next()?.get() == .binary(Data([2])))
        #expect(plain.connection.sent == [.binary(Data([1]))])
        #expect(plain.requests.first?.url?.absoluteString == "wss://api.example.com/v1/raw")
    }
}

extension Swift.Result {
    /// The failure, where it is one.
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
