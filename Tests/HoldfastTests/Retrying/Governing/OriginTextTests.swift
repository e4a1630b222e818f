// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Testing

@testable import Holdfast

@Suite("The origin of a request")
struct OriginTextTests {
    @Test(
        "Scheme, host and port, as RFC 9110 §4.3.1 compares them",
        arguments: [
            ("http://origin.example/a?b#c", "http://origin.example"),
            ("http://origin.example", "http://origin.example"),
            ("https://origin.example?x", "https://origin.example"),
            ("HTTP://Origin.Example/a", "http://origin.example"),
            ("http://origin.example:80/a", "http://origin.example"),
            ("https://origin.example:80", "https://origin.example:80"),
            ("https://origin.example:443/", "https://origin.example"),
            ("http://origin.example:/", "http://origin.example"),
            ("http://user:pass@origin.example/", "http://origin.example"), ("http://[::1]:8080/x", "http://[::1]:8080"),
            ("unix:/socket", "unix"), ("", ""), ("nothing", ""), ("://", "://"),
        ]
    )
    func origins(url: String, origin: String) {
        #expect(OriginText(url).text == origin)
    }
}
