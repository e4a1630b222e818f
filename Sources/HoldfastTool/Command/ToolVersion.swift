// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    /// The version of this release: what `--version` prints, and what the tool calls itself to servers and in exports.
    ///
    /// It is the newest one of CHANGELOG.md; a test holds the two together.
    enum ToolVersion {
        static let text = "0.1.0"
        /// Name and version as a product of User-Agent (RFC 9110 §10.1.5).
        static let product = "holdfast/\(text)"
    }
#endif
