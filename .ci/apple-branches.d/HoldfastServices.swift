// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// What Foundation has on Apple systems alone, for .ci/apple-branches. Never linked.

internal import Foundation
internal import FoundationNetworking

extension URLRequest.NetworkServiceType {
    static var responsiveData: Self { .default }
}
