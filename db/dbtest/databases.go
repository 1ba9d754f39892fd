package dbtest

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// databases lists the tests of make test that have a database of their own, each with the reason. All other tests use
// an organization in the database that their test program shares. CONTRIBUTING.md has the same list. Tests that run
// only at the long scale are not listed.
var databases = map[string]string{ // #nosec G101 -- they are no secrets
	// archival
	"TestQueueOfPassages":       "the queue of vectors looks for owners in all organizations",
	"TestArchivesAreBackfilled": "a new embedding space is filled in all organizations",
	"TestPlansAndIndexes":       "plans depend on the statistics of whole tables; words are pruned in all organizations",
	// cmd/loci
	"TestADatabaseOfAnEarlierVersionIsTakenOver": "it migrates a database",
	"TestAMigrationThatIsStoppedResumes":         "it migrates a database",
	"TestAServerIsObserved":                      "metrics count the whole database",
	"TestAServerOutlivesARebuiltSchema":          "it changes the version of the schema",
	"TestAServerOwnsNothing":                     "it migrates a database, and its server has a role of its own",
	"TestAnUploadThatTheServerCutsIsAnswered":    "its server stops, and leaves jobs that another would take",
	"TestBackupsAreRestored":                     "a backup is of a whole database",
	"TestCommandsOnADatabase":                    "doctor, keys and organizations are of a whole database",
	"TestNothingIsLostWhenServersAreKilled":      "its servers are killed, and their jobs are taken over",
	"TestReembedding":                            "embedding spaces are of the whole database",
	"TestServersAndTheirModel":                   "its servers work with a model of their own on the jobs of the database",
	"TestTheMainJob":                             "it begins with an empty database",
	"TestWorkOutlivesItsServers":                 "its servers are killed, and their jobs are taken over",
	// db
	"TestAWholeDatabase":            "it migrates databases, changes roles, and clears deleted organizations",
	"TestOlderDatabasesAreMigrated": "it migrates databases",
	// db/backup
	"TestABackup": "a backup is of a whole database",
	// db/cluster
	"TestAFilledDatabaseIsSpread": "it spreads a database",
	// db/queue
	"TestAServerEndsOnAnotherSchema": "it changes the version of the schema",
	// embed
	"TestAStartUndoesNoLaterCancellation": "embedding spaces are of the whole database",
	// embed/wordindex
	"TestPruningTakesInEveryOrganization": "words are pruned in all organizations",
	// files
	"TestFilesWaitForTheFirstAnswer": "a new embedding space is filled in all organizations",
	"TestIndexOfText":                "text is indexed in all organizations",
	"TestIndexOfWords":               "the index of words is pruned in all organizations",
	"TestIndexesOfVectors":           "an index is of the vectors of all organizations, and its owner builds it",
	"TestPlans":                      "plans depend on the statistics of whole tables",
	"TestTurns":                      "fair turns read all jobs of a queue",
	// recall
	"TestALogIsBackfilled":                "a new embedding space is filled in all organizations",
	"TestHowPostgresReadsMessages":        "plans depend on the statistics of whole tables",
	"TestQueueOfMessages":                 "the queue of vectors looks for owners in all organizations",
	"TestServersClearADeletedAgentAtOnce": "deleted agents are cleared in all organizations",
	// server
	"TestBackgroundJobsAreListed":                 "the operator lists the jobs of all organizations",
	"TestOneSearchFindsMemoryFilesByTheirMeaning": "the queue of vectors looks for owners in all organizations",
	"TestTheFirstKeyOfADatabase":                  "a database has one first key",
	"TestTheOperatorSetsThePolicyOfTheServer":     "the policy of the server is for all organizations",
	// agent
	"TestWindowChecksOfOrganizationsTakeTurns": "fair turns read all jobs of a queue",
	// tenant/apikey
	"TestTheFirstKeyAndTheOneOfTheSettings": "a database has one first key, and one of the settings",
	// cmd/loci/lettadb
	"TestAnImportStoresWhatItsDryRunSays": "it reads databases of Letta's, and counts all rows",
	// memory/file
	"TestQueueOfMemoryFiles": "the queue of vectors looks for owners in all organizations",
}

// checkListed fails a test of make test that has a database of its own and is not in the list.
func checkListed(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if strings.HasPrefix(name, "Test") && databases[name] == "" && scale.Of(0, 1) == 0 {
		t.Errorf("dbtest: %s is not listed in databases.go: take an organization with dbtest.Org", name)
	}
}
