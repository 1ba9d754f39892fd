package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/recall"
)

// claimTests maps package → test → numbers of the harnesses' claims that the test checks. Tests named TestClaim… have
// the numbers in their names.
var claimTests = map[string]map[string][]int{
	"compaction/policy": {
		"TestAgeTTLGoldenNumbers":                     {216, 217, 218, 219, 221, 222, 224},
		"TestAutoCompactKeepsWhatMatters":             {309, 310},
		"TestAutoCompactReducesToHalfOfItsThreshold":  {289, 290, 291, 292, 293, 306},
		"TestCacheTTLGoldenNumbers":                   {55, 56, 57, 220, 223},
		"TestCharTokensCountCodeUnits":                {108},
		"TestCheckpointPrunesWhatItCovers":            {110},
		"TestClaimsAboutBounds":                       {15, 69, 70, 73, 103, 107, 126, 280, 281},
		"TestClaimsAboutOldResults":                   {55, 105, 147, 150, 152, 175, 222, 288, 311, 314},
		"TestClaimsAboutPrices":                       {116, 117},
		"TestClaims319To325ASessionOf287000Tokens":    {269, 319, 320, 321, 322, 323, 324, 325},
		"TestClaudeCodeAsksForNineParts":              {60, 61},
		"TestDeckSummarizesTheOldest70PercentOfTurns": {135, 136},
		"TestDedupComparesTextsNotCalls":              {150, 151, 152, 154, 175},
		"TestFormatsAreWhole":                         {61, 143, 294},
		"TestFourLayersEachRespectTheirTrigger":       {278, 284, 297, 301, 303, 304},
		"TestFourLayersSummaryHasItsMarkers":          {296},
		"TestFullHidesAll":                            {60},
		"TestHardTruncateBudgetIs195000":              {299},
		"TestHardTruncateStopsAtTheFirstMisfit":       {298, 300},
		"TestIdempotentCallsShowTheNewestState":       {105},
		"TestImportantTail":                           {15, 16},
		"TestJSONPreview":                             {106, 107},
		"TestLargestSlice":                            {103, 104},
		"TestLettaPlansAsWithoutAPolicy":              {74, 75, 76, 77},
		"TestOffloadGoldenNumbers":                    {68, 70, 71, 72, 73},
		"TestOneLine":                                 {285, 287, 305},
		"TestPiKeepsTheNewest20000Tokens":             {43, 44},
		"TestQuietPointWaits":                         {177},
		"TestRecencyKeepsPromptsFlat":                 {146, 148, 180},
		"TestRestoreShowsTheNewestFilesAgain":         {63},
		"TestSafeguardDropsAbove120000":               {48, 49},
		"TestSnipGoldenNumbers":                       {279, 280, 281, 282},
		"TestTokenClip":                               {123, 124, 125, 126, 127, 130, 131, 133},
		"TestEndsOfAClipShareWhatTheNoteLeaves":       {128, 129},
		"TestTriggersFireAtTheirNumbers":              {41, 42, 58, 59},
		"TestTurnCountFiresAtTurns10And20":            {138},
		"TestUsageIsReportedAndEstimated":             {98},
		"TestWhatIsSacredStays":                       {277, 308},
	},
	"compaction/plan": {
		"TestTheFirstAttemptEvictsTheShareOfTheSettings": {75},
		"TestTwelveParallelCallsAreNeverSplit":           {46, 53},
		"TestWhatIsDue":                                  {74, 81},
	},
	"compaction/summary": {
		"TestFactsSurviveThirtyTwoCompactions":            {143},
		"TestWhatASummaryLeavesOutIsAskedForAndThenAdded": {143, 145},
		"TestFullSummaryDropsTheOldestRounds":             {66, 67},
		"TestHeadDrop":                                    {66, 67},
		"TestMaxChunkOf200000Is75904":                     {50},
		"TestStagedSummaryMergesParts":                    {50},
		"TestThoughtsAndWrappingsAreTakenOff":             {64, 65},
	},
	"compaction/lab": {"TestRatioReplaysHoldAShareOfTheSession": {173, 182}},
	"db/event":       {"TestConsumersKeepTheirPlace": {192, 199}, "TestSlicesOfEventsAreExact": {191, 193, 194}},
	"files":          {"TestTheLeastRecentlyUsedFileIsClosed": {39}, "TestLimitsForHoldsAtEachBoundary": {33, 34, 35, 36}},
	"recall":         {"TestResultsArePairedWithTheirCalls": {52}, "TestSecretsAreStoredNowhere": {179}},
	"server": {
		"TestAConversationThatEndsIsHandedOver":                {202, 241, 249, 261},
		"TestAModelWritesTheHandover":                          {242, 243, 244, 256},
		"TestASessionIsHandedOverWithoutAModel":                {172, 241, 243, 261, 268},
		"TestCompactingAConversation":                          {140},
		"TestOneSearchFindsWhatAllMemoriesHold":                {263},
		"TestVectorsAreAskedOnlyWhereNoNearLayerKnowsThePlace": {263},
		"TestResultsAreBoundedByThePolicy":                     {132},
		"TestUpdatesWaitForAnOperator":                         {172},
		"TestACheckpointIsForcedOnceAndCompactsAfterwards":     {109, 110}, "TestASlowHandoverGoesOn": {245},
		"TestAForkedChildsPromptBeginsWithItsParents": {88}, "TestBlankAndBriefChildren": {84, 87, 184}},
	"agent": {"TestClaims209To212TheSharesOfFifteenSessions": {208, 209, 210, 211, 212, 266},
		"TestATurnIsTakenUpWithoutAModel": {165, 174}, "TestATurnIsTakenUpByTheModel": {171},
		"TestStatsCountWhatIsExpandedByStep": {183}, "TestPlantedDecisionsStayInThePrompt": {160, 166},
		"TestAnIdleConversationIsCompacted":  {141},
		"TestAPromptIsShownAgainByteForByte": {158}, "TestForksAndResetsOfWorkingMemory": {155},
		"TestFlushThresholds": {54}, "TestGrowingPromptsAreAnEvent": {180},
		"TestLimitsFollowTheWindowUnlessTheOperatorSetThem": {37, 38}, "TestWorkingMemorySurvivesCompactions": {159, 160}},
	"memory/working": {"TestChurnNamesTheFieldsThatFlap": {181},
		"TestAnotherResultOfACallContradictsAnEntry": {172, 176}},
	"memory/file": {"TestTheManifestIsObeyed": {247, 248, 264},
		"TestAModelSortsTheLinesOfAnIndex": {239}, "TestAGrownIndexIsCompressedByItsHeadings": {203, 239},
		"TestIndexesThatPointAreNotRefused": {229, 230, 231, 232}},
}

// noTest maps a reason → claims about working memory, memory files and hand-overs that no test of Loci can check.
var noTest = map[string][]int{
	"how a model or a provider behaves": {118, 119, 120, 134},
	"an opinion of which way is better": {137, 139, 264, 267},
	"what somebody saw in sessions of their own": {121, 201, 204, 205, 206, 207, 213, 214, 215, 225, 226, 238, 240, 246,
		260, 262},
	"an example": {156, 157},
	"advice to those who write prompts or agents":  {149, 228},
	"Loci does otherwise: code enforces the rules": {257},
}

// Each claim about working memory, memory files and hand-overs has a test, or a reason why it has none.
func TestEachClaimAboutStateIsHeldOrNamed(t *testing.T) {
	t.Parallel()
	held := claimsInNames(t)
	for _, tests := range claimTests {
		for _, claims := range tests {
			for _, n := range claims {
				held[n] = true
			}
		}
	}
	for _, claims := range noTest {
		for _, n := range claims {
			held[n] = true
		}
	}
	for _, between := range [][2]int{{116, 184}, {201, 268}} {
		for n := between[0]; n <= between[1]; n++ {
			if !held[n] {
				t.Errorf("claim %d has no test", n)
			}
		}
	}
}

var (
	claimName = regexp.MustCompile(`func TestClaims?((?:\d+(?:And|To)?)+)`)
	number    = regexp.MustCompile(`\d+`)
)

// claimsInNames returns the claims in the names of tests about state.
func claimsInNames(t *testing.T) map[int]bool {
	t.Helper()
	held := map[int]bool{}
	for _, dir := range []string{"compaction/policy", "memory/working", "memory/file", "agent"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no tests: %v", dir, err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range claimName.FindAllStringSubmatch(string(raw), -1) {
				for _, n := range number.FindAllString(m[1], -1) {
					claim, err := strconv.Atoi(n)
					if err != nil {
						t.Fatal(err)
					}
					held[claim] = true
				}
			}
		}
	}
	return held
}

// The deck's summary keeps paths, decisions, obstacles and the next action. It leaves out tools' output, thoughts and
// repeated reads.
func TestClaims143And144WhatTheDecksSummaryKeeps(t *testing.T) {
	t.Parallel()
	var headings, words []string
	for _, s := range policy.Formats()["deck"].Sections {
		headings, words = append(headings, s.Heading), append(words, s.Words)
	}
	want := []string{"Files touched:", "Decisions:", "Blocking issues:", "Next planned action:"}
	if !slices.Equal(headings, want) {
		t.Errorf("got %q, want %q", headings, want)
	}
	if all := strings.Join(words, " "); !strings.Contains(all, "No output of tools, no thoughts, no repeated reading") {
		t.Errorf("the model may keep what the deck leaves out: %q", all)
	}
}

// The deck has four levers: it clips results, shows equal ones once, clears by age, and summarizes old turns, in this
// order.
func TestClaims122And153TheDecksFourLevers(t *testing.T) {
	t.Parallel()
	p, err := policy.Preset("deck")
	if err != nil {
		t.Fatal(err)
	}
	var levers []string
	for _, s := range p.Steps {
		if d := policy.Describe(s); d.Stage != policy.Pressure {
			levers = append(levers, d.Name)
		}
	}
	if want := []string{"token_clip", "dedup", "recency", "oldest_share"}; !slices.Equal(levers, want) {
		t.Errorf("got %v, want %v", levers, want)
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// Every test that checks a claim exists.
func TestClaimsHaveTheirTests(t *testing.T) {
	t.Parallel()
	for dir, tests := range claimTests {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no tests: %v", dir, err)
		}
		var have []string
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testFunction.FindAllStringSubmatch(string(raw), -1) {
				have = append(have, m[1])
			}
		}
		for name, claims := range tests {
			if !slices.Contains(have, name) || len(claims) == 0 {
				t.Errorf("%s of %s, which holds the claims %v, is not there", name, dir, claims)
			}
		}
	}
}

// longSession returns a session of 32 turns with 287,000 tokens.
func longSession() *talk {
	v := newTalk(200_000, 4_000)
	for range 32 {
		v.say(recall.User, 200).look(4_290).look(2_100).say(recall.Assistant, 2_100)
	}
	return v
}

// A session of 287,000 tokens in 32 turns exceeds 200,000 from turn 22 or 23 on. Snipping saves about 89,000, and lines
// instead of old results about 56,000. The rest is below 80 %, where summaries would begin, so the other layers do
// nothing.
func TestClaims319To325ASessionOf287000Tokens(t *testing.T) {
	t.Parallel()
	v := longSession()
	if n := clip.Estimate(v.View); !within(float64(n), 287_000, 0.02) {
		t.Fatalf("the session takes %d tokens", n)
	}
	turns, used := 0, plan.FixedTokens(v.View)
	for _, m := range v.Messages {
		if m.Role == recall.User {
			turns++
		}
		if used += m.Tokens; used > v.Window {
			break
		}
	}
	if turns < 21 || turns > 24 {
		t.Errorf("without a policy it does not fit from turn %d on", turns)
	}
	snip := step{"step": "snip", "max_chars": 10_000, "head_share": 0.3, "tail_share": 0.3}
	lines := step{"step": "one_line", "trigger_share": 0.6, "stop_share": 0, "oldest_share": 0.5, "protect_newest": 0,
		"protect_errors": 0, "model": false}
	at := policy.Moment{Now: epoch}
	snipped, _ := pressureOf(t, snip).Prune(v.View, at)
	lined, _ := pressureOf(t, lines).Prune(snipped, at)
	for layer, tokens := range map[string][2]int{"snip": {clip.Estimate(snipped), 198_000},
		"one line": {clip.Estimate(lined), 142_000}} {
		if !within(float64(tokens[0]), float64(tokens[1]), 0.05) {
			t.Errorf("after %s: %d tokens, want about %d", layer, tokens[0], tokens[1])
		}
	}
	p, err := policy.Preset("fourlayer-literal")
	if err != nil {
		t.Fatal(err)
	}
	if due, _ := p.Check(lined, at, plan.TriggerState{}); due.Compact {
		t.Error("messages are summarized below 80 % of the window")
	}
	if plan, err := p.Truncate(lined, at); !isNothing(err) {
		t.Errorf("messages are hidden: %+v, %v", plan, err)
	}
}

// Summaries by a model have at most 200 tokens in the deck and 1,000 in the four layers. A line instead of a result
// has at most 100.
func TestClaims142And286And295BoundsOfSummaries(t *testing.T) {
	t.Parallel()
	deck, layers := policy.Formats()["deck"], policy.Formats()["four-layers"]
	if deck.MaxTokens != 200 || layers.ByModel != 1_000 {
		t.Errorf("%d and %d tokens", deck.MaxTokens, layers.ByModel)
	}
	if n := settingOf(t, "fourlayer-literal", "one_line", "max_tokens"); n != 100 {
		t.Errorf("a line has %v tokens", n)
	}
}

// The four layers begin at 10,000 characters of a result, and at 60, 80 and 95 % of the window.
func TestClaim302DefaultsOfTheFourLayers(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"four-layers", "fourlayer-literal"} {
		for setting, want := range map[[2]string]any{{"snip", "max_chars"}: 10_000, {"one_line", "trigger_share"}: 0.6,
			{"fraction", "window_share"}: 0.8, {"auto_compact", "threshold_share"}: 0.8,
			{"hard_truncate", "above_share"}: 0.95} {
			if got := settingOf(t, preset, setting[0], setting[1]); got != want {
				t.Errorf("%s: %v is %v, want %v", preset, setting, got, want)
			}
		}
	}
}

// settingOf returns the value of a setting of a preset's step.
func settingOf(t *testing.T, preset, name, setting string) any {
	t.Helper()
	p, err := policy.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		for _, set := range policy.Settings(s) {
			if policy.NameOf(s) == name && set.Name == setting {
				return set.Value
			}
		}
	}
	t.Fatalf("%s has no %s.%s", preset, name, setting)
	return nil
}
