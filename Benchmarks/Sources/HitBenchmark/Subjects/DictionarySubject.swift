// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges
internal import Foundation
internal import Holdfast
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A dictionary under one lock, from the URL's text to the prepared response: the minimum that any shared cache does.
final class DictionarySubject: Subject {
    let name = "dictionary"
    private let responses: Mutex<[String: Response]>
    private let answers: Mutex<[String: (Data, URLResponse)]>

    init(count: Int, length: Int) {
        var responses: [String: Response] = [:]
        var answers: [String: (Data, URLResponse)] = [:]
        for resource in (0..<count).map({ Resource($0, length: length) }) {
            let response = resource.response(now: SystemClock().timestamp)
            responses[resource.url] = response
            if let head = response.makeHTTPURLResponse() { answers[resource.url] = (Data(resource.body), head) }
        }
        self.responses = Mutex(responses)
        self.answers = Mutex(answers)
    }

    func takesPart(in hitCase: HitCase) -> Bool { hitCase.tier == .memory && hitCase.kind != .fullDecision }

    func ask(_ asking: Asking, _ places: Range<Int>, _ hitCase: HitCase) async throws -> Int {
        var right = 0
        if hitCase.asksData {
            for place in places {
                let number = asking.number(place)
                guard let url = asking.requests[number].url?.absoluteString,
                    let (data, _) = answers.withLock({ $0[url] })
                else { continue }
                if asking.resources[number].holds(data) { right += 1 }
            }
        } else {
            for place in places {
                let number = asking.number(place)
                guard let url = asking.requests[number].url?.absoluteString,
                    let bytes = responses.withLock({ $0[url] })?.body.bytesInMemory
                else { continue }
                if asking.resources[number].holds(bytes) { right += 1 }
            }
        }
        return right
    }
}
