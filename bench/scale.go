package main

import "time"

// Scale says how much is measured.
type Scale struct {
	IngestBytes int64 // of text in each ingestion
	Passes      int   // number of ingestions, and of COPYs
	SmallFiles  int   // number of files of 10 KB that are loaded together
	Queries     int
	SearchFor   time.Duration // duration of each measurement of a search
	Rounds      int           // measurements of a search on each side
	GrepBytes   int64         // of text that is searched for patterns
	GrepRuns    int           // runs of each pattern on each side
	BulkBytes   int64         // of text that is loaded while memory is watched, including GrepBytes
	LargeBytes  int64         // of a large file
	SmallBytes  int64         // of a small file
	Opens       int           // of each file
	Starts      int
	History     int           // messages in a long history
	Passages    int           // passages in one archive, and in archives of smallArchive passages
	Turns       int           // turns of an agent's life with compactions
	Settle      time.Duration // how long until a server without work is idle
}

const mebibyte = 1 << 20

// scales returns the scales that BENCH_SCALE can name. The targets apply only to the full scale.
func scales() map[string]Scale {
	return map[string]Scale{
		"full": {IngestBytes: 128 * mebibyte, Passes: 3, SmallFiles: 12_000, Queries: 64, SearchFor: 5 * time.Second,
			Rounds: 3, GrepBytes: 512 * mebibyte,
			GrepRuns: 5, BulkBytes: 1024 * mebibyte, LargeBytes: 50 * mebibyte, SmallBytes: 50 << 10, Opens: 200, Starts: 5,
			Settle: 10 * time.Second, History: 1_000_000, Passages: 100_000, Turns: 2000},
		"small": {IngestBytes: 12 * mebibyte, Passes: 1, SmallFiles: 600, Queries: 64, SearchFor: time.Second, Rounds: 1,
			GrepBytes: 16 * mebibyte,
			GrepRuns:  2, BulkBytes: 32 * mebibyte, LargeBytes: 5 * mebibyte, SmallBytes: 50 << 10, Opens: 50, Starts: 1,
			Settle: 2 * time.Second, History: 40_000, Passages: 20_000, Turns: 200},
		"tiny": {IngestBytes: mebibyte, Passes: 1, SmallFiles: 20, Queries: 50, SearchFor: 50 * time.Millisecond, Rounds: 1,
			GrepBytes: mebibyte, GrepRuns: 1,
			BulkBytes: 3 * mebibyte, LargeBytes: mebibyte, SmallBytes: 20 << 10, Opens: 5, Starts: 1,
			Settle:  10 * time.Millisecond,
			History: 16_000, Passages: 1_000, Turns: 30},
	}
}

// uploaders is how many clients upload at the same time.
const uploaders = 6

// copiers is the number of connections of a COPY baseline: as many as the server has parsers.
const copiers = 2

// manyClients is how many clients the throughput of a search is measured with.
const manyClients = 8

// floodClients is the number of clients of the flooding tenant. Each has its own agent and folder.
const floodClients = 24
