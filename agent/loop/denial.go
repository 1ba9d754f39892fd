package loop

import (
	"strings"

	"github.com/loci-memory/loci/recall"
)

// deniedByClient begins the result of a call that the client denied.
const deniedByClient = "The request to call the tool was denied."

// noReason stands in the result of a denied call if the client gave no reason.
const noReason = "No reason was given."

func isDenied(result recall.Part) bool {
	return result.IsError && (result.Approval == recall.Denied || strings.HasPrefix(result.Text, deniedByClient))
}

// DenialReason returns the client's reason for a denial, read from the text of the call's result; empty if it has none.
func DenialReason(result string) string {
	reason, says := strings.CutPrefix(result, deniedByClient)
	if reason = strings.TrimSpace(reason); !says || reason == noReason {
		return ""
	}
	return reason
}
