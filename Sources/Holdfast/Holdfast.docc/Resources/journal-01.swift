// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct Journal: ServiceHook {
    func onSchedule(_ request: inout URLRequest, _ context: inout CallContext) async throws -> Response? {
        request.setValue("forecasts/1.0", forHTTPHeaderField: "User-Agent")
        return nil
    }
}
