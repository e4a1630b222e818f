// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Holdfast
import HoldfastObservability
import Logging

func makeClient(cache: HTTPCache) -> Pipeline {
    var options = ObserverOptions()
    options.parts = [.logs, .metrics]
    options.logsURLs = true
    options.shownArguments = ["units"]
    var configuration = PipelineConfiguration()
    configuration.observe(with: PipelineObserver(logger: Logger(label: "weather"), options: options))
    return Pipeline(transport: URLSessionTransport(), cache: cache, configuration: configuration)
}
