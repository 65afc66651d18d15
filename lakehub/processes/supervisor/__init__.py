"""What `manage.py up` becomes: the processes of an instance, run together and ended together. No Django in here."""
