package console

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
)

// sendFiles uploads the files of a form one by one, for browsers without JavaScript. It stops at the first file that
// the API refuses; earlier files stay stored.
func sendFiles(v *visit) error {
	if _, err := v.folder(); err != nil {
		return err
	}
	if !v.MayWrite() {
		return &apiError{Status: http.StatusForbidden, Detail: "Your key may only read. Sign in with one that has write."}
	}
	if v.parts == nil { // the form's value came in the header
		var err error
		if v.parts, err = v.r.MultipartReader(); err != nil {
			return &apiError{Status: http.StatusBadRequest, Detail: "This is no form with files: " + err.Error()}
		}
	}
	count := 0
	for {
		part, err := v.parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &apiError{Status: http.StatusBadRequest, Detail: "The form ended early: " + err.Error()}
		}
		if part.FileName() == "" { // a file field without a chosen file
			continue
		}
		if err := v.sendFile(part); err != nil {
			refused, ok := errors.AsType[*apiError](err)
			if !ok {
				return err
			}
			stored := ""
			if count > 0 {
				stored = " " + plural(count, "file", "files") + " before it are stored."
			}
			return &apiError{refused.Status, part.FileName() + ": " + refused.Detail + stored, refused.Code}
		}
		count++
	}
	if count == 0 {
		return &apiError{Status: http.StatusUnprocessableEntity, Detail: "No file was chosen. Choose at least one."}
	}
	return v.done(base+"folders/"+v.id("folder"), "uploaded")
}

// sendFile streams a file of a form to the API.
func (v *visit) sendFile(part *multipart.Part) error {
	body, pipe := io.Pipe()
	form := multipart.NewWriter(pipe)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		file, err := form.CreateFormFile("file", part.FileName())
		if err == nil {
			_, err = io.Copy(file, part)
		}
		if err == nil {
			err = form.Close()
		}
		pipe.CloseWithError(err)
	}()
	r := v.request(http.MethodPost, "/v1/folders/"+v.id("folder")+"/upload", body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.ContentLength = -1
	answer := &recorder{header: http.Header{}}
	v.console.api.ServeHTTP(answer, r)
	_ = body.CloseWithError(fmt.Errorf("the upload of %s has ended", part.FileName())) // the error is always nil
	<-copied
	return answer.err()
}
