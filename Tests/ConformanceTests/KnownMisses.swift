// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The required and optimal cases that may miss, each with its reason; any other miss fails the tests.
enum KnownMisses {
    /// What asks for more than the RFC gives; files that lack the case lose nothing by its name here.
    static let reasons = [
        "conditional-lm-fresh-no-lm": "asks for what RFC 9111 §4.3.2 does not give without a Last-Modified"
    ]
}
