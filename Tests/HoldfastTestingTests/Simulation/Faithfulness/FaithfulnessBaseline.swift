// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What the study's own simulator gives for a tenth of its fleet: mean and standard deviation over 60 seeds.
///
/// It is another program in another language with other random numbers, so that runs compare by their statistics only.
enum FaithfulnessBaseline {
    /// Subject, figure, mean, deviation; `never` where no run recovered.
    static let figures: [String: String] = [
        "outage": """
        none: success 0.74981 0.00871, successInFault 0 0, load 1 0, loadInFault 1 0, recoverySeconds 0 0,
        none: peakRate 152.5 14.8, medianSuccessSeconds 0.0468801 0.00355,
        none: p99SuccessSeconds 0.251255 0.0222, p99FailureSeconds 0.005 0, wastedWork 0 0
        3-retries-immediate: success 0.750126 0.00871, successInFault 0.00126292 0.00144,
        3-retries-immediate: load 1.75029 0.0261, loadInFault 3.9976 0.00279, recoverySeconds 0 0,
        3-retries-immediate: peakRate 152.667 14.8, medianSuccessSeconds 0.0469287 0.0034,
        3-retries-immediate: p99SuccessSeconds 0.251406 0.022, p99FailureSeconds 0.02 0, wastedWork 0 0
        full-jitter: success 0.759114 0.00876, successInFault 0.0372147 0.00735, load 1.74522 0.0259,
        full-jitter: loadInFault 3.94142 0.013, recoverySeconds 0 0, peakRate 227.833 41.4,
        full-jitter: medianSuccessSeconds 0.0491915 0.00376, p99SuccessSeconds 0.350234 0.0511,
        full-jitter: p99FailureSeconds 0.64001 0.0085, wastedWork 0 0
        alamofire: success 0.773669 0.0771, successInFault 0.1512 0.00963, load 1.51744 0.157,
        alamofire: loadInFault 2.79586 0.0177, peakRate 271.333 41.9,
        alamofire: medianSuccessSeconds 0.0606576 0.00732, p99SuccessSeconds 2.17551 0.133,
        alamofire: p99FailureSeconds 1.66425 0.574, wastedWork 82.6333 422
        aws-2.1: success 0.74981 0.00871, successInFault 0 0, load 1.0625 0.00131,
        aws-2.1: loadInFault 1.25014 0.0104, recoverySeconds 0 0, peakRate 152.5 14.8,
        aws-2.1: medianSuccessSeconds 0.0468801 0.00355, p99SuccessSeconds 0.251255 0.0222,
        aws-2.1: p99FailureSeconds 0.136641 0.00489, wastedWork 0 0
        grpc: success 0.74981 0.00871, successInFault 0 0, load 1.00765 0.000488,
        grpc: loadInFault 1.03062 0.00226, recoverySeconds 0 0, peakRate 152.5 14.8,
        grpc: medianSuccessSeconds 0.0468801 0.00355, p99SuccessSeconds 0.251255 0.0222,
        grpc: p99FailureSeconds 0.170473 0.0767, wastedWork 0 0
        candidate-d: success 0.749934 0.00869, successInFault 0.000493917 0.000767, load 1.0346 0.000794,
        candidate-d: loadInFault 1.1379 0.00374, recoverySeconds 0 0, peakRate 152.5 14.8,
        candidate-d: medianSuccessSeconds 0.0469287 0.00352, p99SuccessSeconds 0.251457 0.022,
        candidate-d: p99FailureSeconds 0.475875 0.0348, wastedWork 0 0
        candidate-a: success 0.74994 0.00868, successInFault 0.000515558 0.000771, load 1.03485 0.000789,
        candidate-a: loadInFault 1.13891 0.00458, recoverySeconds 0 0, peakRate 152.5 14.8,
        candidate-a: medianSuccessSeconds 0.0469239 0.00352, p99SuccessSeconds 0.251321 0.022,
        candidate-a: p99FailureSeconds 0.423291 0.0487, wastedWork 0 0
        candidate-b: success 0.755011 0.0355, successInFault 0.174003 0.0338, load 1.21793 0.0367,
        candidate-b: loadInFault 1.13902 0.00453, recoverySeconds 4.16667 2.25, peakRate 855.5 50.8,
        candidate-b: medianSuccessSeconds 0.140278 0.0571, p99SuccessSeconds 9.69087 0.0933,
        candidate-b: p99FailureSeconds 10 9.46e-16, wastedWork 500.017 186
        candidate-c: success 0.8054 0.0244, successInFault 0.259559 0.0537, load 1.19303 0.033,
        candidate-c: loadInFault 1.1381 0.00396, recoverySeconds 2.78333 2.42, peakRate 315.833 49.9,
        candidate-c: medianSuccessSeconds 0.244569 0.17, p99SuccessSeconds 9.51833 0.118,
        candidate-c: p99FailureSeconds 10 8.63e-16, wastedWork 288.683 141
        """,
        "slow": """
        none: success 0.627623 0.0276, successInFault 0.124366 0.0425, load 1 0, loadInFault 1 0,
        none: recoverySeconds 14.3667 1.28, peakRate 159.667 13.3, medianSuccessSeconds 0.0545951 0.00428,
        none: p99SuccessSeconds 0.911658 0.0392, p99FailureSeconds 1 8.78e-16, wastedWork 1462.13 112
        3-retries-immediate: success 0.187168 0.0101, successInFault 0.124153 0.0423, load 3.43851 0.0302,
        3-retries-immediate: loadInFault 3.51958 0.13, recoverySeconds never 0, peakRate 742.833 58.7,
        3-retries-immediate: medianSuccessSeconds 0.0546729 0.00722, p99SuccessSeconds 0.900177 0.0633,
        3-retries-immediate: p99FailureSeconds 4 0, wastedWork 4682.92 73.8
        full-jitter: success 0.187172 0.0101, successInFault 0.124176 0.0423, load 3.43849 0.0302,
        full-jitter: loadInFault 3.48158 0.136, recoverySeconds never 0, peakRate 525.667 44,
        full-jitter: medianSuccessSeconds 0.0546792 0.00722, p99SuccessSeconds 0.90006 0.0632,
        full-jitter: p99FailureSeconds 4.38675 0.0285, wastedWork 4686.5 72.7
        alamofire: success 0.187204 0.0101, successInFault 0.124366 0.0425, load 2.62559 0.0202,
        alamofire: loadInFault 2.48861 0.0943, recoverySeconds never 0, peakRate 375.667 21.3,
        alamofire: medianSuccessSeconds 0.05469 0.00723, p99SuccessSeconds 0.899968 0.063,
        alamofire: p99FailureSeconds 4.5 0, wastedWork 4729.57 69.7
        aws-2.1: success 0.627802 0.0271, successInFault 0.124176 0.0423, load 1.04219 0.000796,
        aws-2.1: loadInFault 1.25099 0.0106, recoverySeconds 14.2333 1.23, peakRate 159.833 13.2,
        aws-2.1: medianSuccessSeconds 0.0547379 0.00428, p99SuccessSeconds 0.915533 0.042,
        aws-2.1: p99FailureSeconds 2.51101 0.484, wastedWork 1463.32 110
        grpc: success 0.627394 0.0271, successInFault 0.124223 0.0424, load 1.0053 0.000373,
        grpc: loadInFault 1.03186 0.00261, recoverySeconds 14.3833 1.25, peakRate 159.667 13.3,
        grpc: medianSuccessSeconds 0.0546297 0.00434, p99SuccessSeconds 0.91084 0.0399,
        grpc: p99FailureSeconds 2.09203 0.00427, wastedWork 1463.18 110
        candidate-d: success 0.58935 0.0341, successInFault 0.124176 0.0423, load 1.03026 0.00224,
        candidate-d: loadInFault 1.07167 0.0105, recoverySeconds 16.7 1.68, peakRate 162.833 13.4,
        candidate-d: medianSuccessSeconds 0.0557911 0.00439, p99SuccessSeconds 0.941276 0.0314,
        candidate-d: p99FailureSeconds 4.29496 0.0466, wastedWork 1699.35 151
        candidate-a: success 0.525494 0.0397, successInFault 0.124176 0.0423, load 1.07042 0.0061,
        candidate-a: loadInFault 1.13703 0.00332, recoverySeconds 20.4667 2, peakRate 218.667 27,
        candidate-a: medianSuccessSeconds 0.0578671 0.00538, p99SuccessSeconds 1.01307 0.268,
        candidate-a: p99FailureSeconds 3.12607 0.128, wastedWork 2087.73 191
        candidate-b: success 0.540643 0.048, successInFault 0.124176 0.0423, load 1.1635 0.0289,
        candidate-b: loadInFault 1.13748 0.0033, recoverySeconds 24.0333 3.66, peakRate 618.167 85.1,
        candidate-b: medianSuccessSeconds 0.180484 0.0966, p99SuccessSeconds 9.56349 0.159,
        candidate-b: p99FailureSeconds 10 0, wastedWork 2412.8 258
        candidate-c: success 0.615757 0.0365, successInFault 0.124176 0.0423, load 1.12217 0.0301,
        candidate-c: loadInFault 1.07494 0.00964, peakRate 223.333 30.7,
        candidate-c: medianSuccessSeconds 0.252579 0.203, p99SuccessSeconds 9.31173 0.226,
        candidate-c: p99FailureSeconds 10 2.29e-16, wastedWork 1973.37 236
        """,
        "herd": """
        none: success 0 0, successInFault 0 0, load 1 0, loadInFault 1 0, peakRate 0 0,
        none: p99FailureSeconds 0.005 0, wastedWork 0 0
        3-retries-immediate: success 0 0, successInFault 0 0, load 50 0, loadInFault 50 0, peakRate 0 0,
        3-retries-immediate: p99FailureSeconds 0.25 0, wastedWork 0 0
        full-jitter: success 1 0, successInFault 1 0, load 9.279 0.0391, loadInFault 8.279 0.0391,
        full-jitter: peakRate 59.6667 10.4, lastSuccessSeconds 28.6629 0.757,
        full-jitter: medianSuccessSeconds 15.0471 0.402, p99SuccessSeconds 27.9333 0.781, wastedWork 0 0
        alamofire: success 0.970333 0.0426, successInFault 0.970333 0.0426, load 6.49483 0.0522,
        alamofire: loadInFault 5 0, peakRate 2000 0, lastSuccessSeconds 33.476 0.0687,
        alamofire: medianSuccessSeconds 22.8905 7.97, p99SuccessSeconds 33.4403 0.0779,
        alamofire: wastedWork 104.9 17.6
        aws-2.1: success 0 0, successInFault 0 0, load 1.875 0, loadInFault 1.875 0, peakRate 0 0,
        aws-2.1: p99FailureSeconds 0.0668007 0.0129, wastedWork 0 0
        grpc: success 0 0, successInFault 0 0, load 1.1 0, loadInFault 1.1 0, peakRate 0 0,
        grpc: p99FailureSeconds 0.126369 0.00218, wastedWork 0 0
        candidate-d: success 0.0239167 0.00227, successInFault 0.0239167 0.00227, load 1.20517 0.00567,
        candidate-d: loadInFault 1.18125 0.00699, peakRate 10.8333 2.79, lastSuccessSeconds 20.6023 3.74,
        candidate-d: medianSuccessSeconds 15.507 2.55, p99SuccessSeconds 20.6021 3.74,
        candidate-d: p99FailureSeconds 0.153525 1.15, wastedWork 0 0
        candidate-a: success 0 0, successInFault 0 0, load 1.225 0, loadInFault 1.225 0, peakRate 0 0,
        candidate-a: p99FailureSeconds 0.105558 0.00366, wastedWork 0 0
        candidate-b: success 1 0, successInFault 1 0, load 2.225 0, loadInFault 1.225 0,
        candidate-b: peakRate 235.167 20.9, lastSuccessSeconds 12.0828 0.166,
        candidate-b: medianSuccessSeconds 11.02 0.108, p99SuccessSeconds 12.0263 0.158, wastedWork 0 0
        candidate-c: success 1 0, successInFault 1 0, load 2.18183 0.00701, loadInFault 1.18183 0.00701,
        candidate-c: peakRate 104 20.9, lastSuccessSeconds 23.1633 4.04, medianSuccessSeconds 15.6429 2.36,
        candidate-c: p99SuccessSeconds 22.4943 4.01, wastedWork 0 0
        """,
        "brownout": """
        none: success 0.700966 0.0112, successInFault 0.700966 0.0112, load 1 0, loadInFault 1 0,
        none: medianSuccessSeconds 0.0362737 0.00194, p99SuccessSeconds 0.230377 0.0154,
        none: p99FailureSeconds 0.005 0, wastedWork 0 0
        3-retries-immediate: success 0.992287 0.00256, successInFault 0.992287 0.00256, load 1.41506 0.0174,
        3-retries-immediate: loadInFault 1.41489 0.0175, medianSuccessSeconds 0.0427012 0.00254,
        3-retries-immediate: p99SuccessSeconds 0.240874 0.013, p99FailureSeconds 0.02 6.43e-16,
        3-retries-immediate: wastedWork 0 0
        full-jitter: success 0.992673 0.00244, successInFault 0.992673 0.00244, load 1.41503 0.0178,
        full-jitter: loadInFault 1.41348 0.0178, medianSuccessSeconds 0.0599261 0.00324,
        full-jitter: p99SuccessSeconds 0.436982 0.0453, p99FailureSeconds 0.541271 0.0724, wastedWork 0 0
        alamofire: success 0.975678 0.00424, successInFault 0.975678 0.00424, load 1.38631 0.0165,
        alamofire: loadInFault 1.3748 0.0167, medianSuccessSeconds 0.0661755 0.005,
        alamofire: p99SuccessSeconds 1.60959 0.0133, p99FailureSeconds 1.515 0, wastedWork 0 0
        aws-2.1: success 0.974108 0.00475, successInFault 0.974108 0.00475, load 1.38875 0.0163,
        aws-2.1: loadInFault 1.38819 0.0163, medianSuccessSeconds 0.0523377 0.00247,
        aws-2.1: p99SuccessSeconds 0.260745 0.0143, p99FailureSeconds 0.147547 0.00983, wastedWork 0 0
        grpc: success 0.717435 0.0122, successInFault 0.717435 0.0122, load 1.0237 0.00148,
        grpc: loadInFault 1.0237 0.00148, medianSuccessSeconds 0.0376163 0.00195,
        grpc: p99SuccessSeconds 0.271415 0.0242, p99FailureSeconds 0.0389067 0.047, wastedWork 0 0
        candidate-d: success 0.933759 0.014, successInFault 0.933759 0.014, load 1.33142 0.0138,
        candidate-d: loadInFault 1.33029 0.0137, medianSuccessSeconds 0.0540774 0.0029,
        candidate-d: p99SuccessSeconds 0.365926 0.0322, p99FailureSeconds 0.537208 0.0867, wastedWork 0 0
        candidate-a: success 0.949881 0.0144, successInFault 0.949881 0.0144, load 1.35417 0.0143,
        candidate-a: loadInFault 1.35308 0.0144, medianSuccessSeconds 0.0558972 0.00312,
        candidate-a: p99SuccessSeconds 0.381174 0.036, p99FailureSeconds 0.516162 0.0749, wastedWork 0 0
        candidate-b: success 0.991028 0.00436, successInFault 0.991028 0.00436, load 1.40522 0.0154,
        candidate-b: loadInFault 1.3853 0.0169, medianSuccessSeconds 0.0611581 0.00365,
        candidate-b: p99SuccessSeconds 4.84156 1.72, p99FailureSeconds 6.77635 3.59,
        candidate-b: wastedWork 0.0333333 0.181
        candidate-c: success 0.991929 0.00339, successInFault 0.991929 0.00339, load 1.40545 0.0162,
        candidate-c: loadInFault 1.38445 0.0143, medianSuccessSeconds 0.0619351 0.00356,
        candidate-c: p99SuccessSeconds 4.97263 1.55, p99FailureSeconds 6.61481 3.62,
        candidate-c: wastedWork 0.0333333 0.181
        """,
    ]
}
