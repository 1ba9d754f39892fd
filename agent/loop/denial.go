package loop

import (
	"strings"

	"github.com/loci-memory/loci/recall"
)

// deniedByClient begins the results of calls that the client denied.
const deniedByClient = "The request to call the tool was denied."

// noReason is what the result of a denied call says if the client gave no reason.
const noReason = "No reason was given."

func isDenied(result recall.Part) bool {
	return result.IsError && (result.Approval == recall.Denied || strings.HasPrefix(result.Text, deniedByClient))
}

// DenialReason returns the reason that the client gave for a denial, by the text of the call's result; empty if the
// text has none.
func DenialReason(result string) string {
	reason, says := strings.CutPrefix(result, deniedByClient)
	if reason = strings.TrimSpace(reason); !says || reason == noReason {
		return ""
	}
	return reason
}
