// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

extension HeaderFields {
    /// The fields of a Foundation dictionary, sorted by name so that equal dictionaries give equal lines.
    ///
    /// A name that is no token cannot be a header field (RFC 9110 §5.1) and is left out.
    public init(_ dictionary: [String: String]) {
        self.init()
        for (name, value) in dictionary.sorted(by: { $0.key < $1.key }) {
            append(rawName: name, value: value)
        }
    }
}
