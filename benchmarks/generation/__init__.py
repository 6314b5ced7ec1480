"""Attribution of generated text beside Captum, Inseq and ContextCite."""
