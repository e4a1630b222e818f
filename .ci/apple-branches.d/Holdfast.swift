// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// What Foundation has on Apple systems alone, for .ci/apple-branches.

internal import Foundation
internal import FoundationNetworking

extension URLSessionConfiguration {
    var apple_waitsForConnectivity: Bool {
        get { false }
        set { _ = newValue }
    }
}
